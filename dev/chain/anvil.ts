import { ChainAwayError, ChainNode } from '../../src/money/chain/chain-node.js';
import { describeFailure, StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { lastLines, startProcess, type ServerProcess } from '../processes/process.js';
import { say } from '../report.js';
import { anvilProgram } from './anvil-program.js';
import { ChainState } from './chain-state.js';

const READY_TIMEOUT_MS = 60_000;

/**
 * One block for each transaction, and one a minute so that time advances; a block a second would add 140
 * MB a day to the state that anvil writes every second. History before the latest block is unused, and
 * anvil would keep it in files that are never removed.
 */
const BLOCKS = ['--mixed-mining', '--block-time=60'];
const NO_HISTORY = '--prune-history';

export interface AnvilOptions {
  /** Folder of the state; created if missing, and kept. */
  readonly stateDir: string;
  /** Folder of the log and the process record. */
  readonly runDir: string;
  readonly port: number;
  readonly chainId: number;
  /** True if blocks may be reorganised, which requires older state. */
  readonly keepsHistory?: boolean;
}

/** A local chain on loopback. */
export interface Anvil {
  readonly rpcUrl: string;
  readonly process: ServerProcess;
  stop(): Promise<void>;
}

/** Starts a chain from its last written state: at most a second older than the moment it was killed. */
export async function startAnvil(options: AnvilOptions): Promise<Anvil> {
  const program = anvilProgram();
  const state = new ChainState(options.stateDir);
  await state.restore();
  const server = await startProcess({
    name: 'chain',
    command: program,
    args: [
      '--network=tempo',
      '--hardfork=t4',
      `--chain-id=${options.chainId}`,
      '--host=127.0.0.1',
      `--port=${options.port}`,
      `--state=${state.file}`,
      '--state-interval=1',
      ...BLOCKS,
      ...(options.keepsHistory === true ? [] : [NO_HISTORY]),
    ],
    runDir: options.runDir,
  });
  let reported = '';
  const endKeeping = state.keepOn((error) => {
    const reason = describeFailure(error);
    if (reason !== reported) say(`The state of the chain could not be saved: ${reason}`);
    reported = reason;
  });
  void server.ended.then(endKeeping);
  const stop = () => server.stop(15_000);

  const rpcUrl = `http://127.0.0.1:${options.port}`;
  const node = new ChainNode({ chainId: options.chainId, url: rpcUrl });
  const ready = await poll(async () => (server.hasEnded() ? 'ended' : isReady(node)), {
    timeoutMs: READY_TIMEOUT_MS,
  });
  if (ready !== 'ready') {
    await stop();
    throw new StartFailure(
      `The chain does not start; the end of ${server.logFile}:\n${lastLines(server.logFile)}`,
    );
  }
  return { rpcUrl, process: server, stop };
}

async function isReady(node: ChainNode): Promise<'ready' | undefined> {
  try {
    await node.blockNumber();
    return 'ready';
  } catch (error) {
    if (error instanceof ChainAwayError) return undefined; // Not listening yet.
    throw error;
  }
}
