import path from 'node:path';
import { StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { lastLines, startProcess, type ServerProcess } from '../processes/process.js';

const READY_TIMEOUT_MS = 60_000;

/**
 * Fairness between owners holds within each partition of a queue, so there is one. Measured on two cores,
 * without the other options each workflow step waits up to 50 ms. A database file would halve the
 * throughput; without one, only a power failure loses data, of the last moments.
 */
const TUNING = [
  '--dynamic-config-value=history.transferProcessorMaxPollRPS=1000',
  '--dynamic-config-value=matching.enableFairness=true',
  '--dynamic-config-value=matching.numTaskqueueReadPartitions=1',
  '--dynamic-config-value=matching.numTaskqueueWritePartitions=1',
  '--sqlite-pragma=journal_mode=wal',
  '--sqlite-pragma=synchronous=normal',
];

const SEARCH_ATTRIBUTES = ['AgentId', 'AgentOwner', 'AgentPhase'];

export interface TemporalOptions {
  /** Path of the Temporal CLI. */
  readonly cli: string;
  /** Folder of the log and the process record. */
  readonly runDir: string;
  readonly port: number;
  readonly uiPort: number;
  /** SQLite file that stores the state; in memory if unset. */
  readonly databaseFile?: string;
}

/** A Temporal dev server on loopback. */
export interface Temporal {
  /** `host:port` of its gRPC API. */
  readonly address: string;
  readonly uiUrl: string;
  readonly process: ServerProcess;
  stop(): Promise<void>;
}

export async function startTemporal(options: TemporalOptions): Promise<Temporal> {
  const uiUrl = `http://127.0.0.1:${options.uiPort}`;
  const server = await startProcess({
    name: 'temporal',
    command: options.cli,
    args: [
      'server',
      'start-dev',
      '--ip=127.0.0.1',
      `--port=${options.port}`,
      `--ui-port=${options.uiPort}`,
      '--ui-disable-news-fetch',
      '--log-format=json',
      '--log-level=error',
      ...(options.databaseFile ? [`--db-filename=${path.resolve(options.databaseFile)}`] : []),
      ...TUNING,
      ...SEARCH_ATTRIBUTES.map((name) => `--search-attribute=${name}=Keyword`),
    ],
    runDir: options.runDir,
  });
  const stop = () => server.stop(15_000);

  const ready = await poll(async () => (server.hasEnded() ? 'ended' : isReady(uiUrl)), {
    timeoutMs: READY_TIMEOUT_MS,
  });
  if (ready !== 'ready') {
    await stop();
    throw new StartFailure(
      `Temporal does not start; the end of ${server.logFile}:\n${lastLines(server.logFile)}`,
    );
  }
  return { address: `127.0.0.1:${options.port}`, uiUrl, process: server, stop };
}

/** Checks the UI's own API, so that both the UI and the server behind it must answer. */
async function isReady(uiUrl: string): Promise<'ready' | undefined> {
  try {
    const response = await fetch(`${uiUrl}/api/v1/namespaces/default`, {
      signal: AbortSignal.timeout(2_000),
    });
    await response.body?.cancel();
    return response.ok ? 'ready' : undefined;
  } catch {
    return undefined; // Not listening yet.
  }
}
