import path from 'node:path';
import { StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { lastLines, startProcess, type ServerProcess } from '../processes/process.js';

const READY_TIMEOUT_MS = 60_000;

/**
 * Fair to the owners of agents: each partition of a queue is so by itself, so there is one. And, measured
 * on two cores: without the others each workflow step waits up to 50 ms, and a database file halves the
 * throughput. A stop loses nothing; only a power cut can lose the last moments.
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
  /** The Temporal CLI. */
  readonly cli: string;
  /** Folder of the log and the process record. */
  readonly runDir: string;
  readonly port: number;
  readonly uiPort: number;
  /** SQLite file that keeps the state; in memory when unset. */
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

/** Through the UI's own API: this says that both the UI and the server behind it answer. */
async function isReady(uiUrl: string): Promise<'ready' | undefined> {
  try {
    const response = await fetch(`${uiUrl}/api/v1/namespaces/default`, {
      signal: AbortSignal.timeout(2_000),
    });
    await response.body?.cancel();
    return response.ok ? 'ready' : undefined;
  } catch {
    return undefined; // not listening yet
  }
}
