import type { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { ensureSearchAttributes } from '../temporal/ensure-search-attributes.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';
import { putSchedules, restoreSchedules } from '../temporal/schedules.js';

const FIRST_PAUSE_MS = 5_000;
const LAST_PAUSE_MS = 5 * 60_000;

export interface PrepareDependencies {
  readonly connection: NativeConnection;
  readonly client: Client;
  readonly namespace: string;
  /** The Docker host on the worker's machine; undefined for a worker without the role `host`. */
  readonly host: string | undefined;
  readonly log: Logger;
}

/** A request to Temporal that must succeed once, and the log line for its failure. */
interface SetupTask {
  readonly attempt: () => Promise<void>;
  readonly refused: string;
}

/** Creates the search attributes, which a managed Temporal may not allow; true if they exist. */
export function prepareSearchAttributes(dependencies: PrepareDependencies): Promise<boolean> {
  const { connection, log, namespace } = dependencies;
  return tryTask(log, {
    attempt: () => ensureSearchAttributes(connection, namespace),
    refused:
      'The search attributes AgentId, AgentOwner and AgentPhase could not be read or created: ' +
      'create missing ones by hand, of type Keyword, or no agent can be started',
  });
}

/**
 * Creates the search attributes and the schedules, with retries beside the worker's other parts, then
 * restores lost ones, until the signal aborts. `pausesMs`: the first and the longest pause between two
 * attempts.
 */
export async function prepareTemporal(
  dependencies: PrepareDependencies,
  signal: AbortSignal,
  pausesMs: readonly [number, number] = [FIRST_PAUSE_MS, LAST_PAUSE_MS],
): Promise<void> {
  const { client, host, log } = dependencies;
  const wishes = [
    () => prepareSearchAttributes(dependencies),
    () =>
      tryTask(log, {
        attempt: () => putSchedules(client, host),
        refused: 'The schedules could not be created, retrying',
      }),
  ];
  const retryUntilDone = async (task: () => Promise<boolean>) => {
    let [pauseMs] = pausesMs;
    while (!signal.aborted && !(await task())) {
      await pause(jittered(pauseMs), signal);
      pauseMs = Math.min(pauseMs * 2, pausesMs[1]);
    }
  };
  await Promise.all(wishes.map(retryUntilDone));
  while (!signal.aborted) {
    await pause(jittered(pausesMs[1]), signal);
    if (!signal.aborted) await restore(dependencies);
  }
}

/** Restores search attributes and schedules that Temporal has lost. */
async function restore(dependencies: PrepareDependencies): Promise<void> {
  const { client, host, log } = dependencies;
  await prepareSearchAttributes(dependencies);
  await tryTask(log, {
    async attempt() {
      if (!(await restoreSchedules(client, host))) return;
      log.error('Temporal had lost its schedules: they were created again');
    },
    refused: 'The schedules could not be checked, retrying',
  });
}

async function tryTask(log: Logger, { attempt, refused }: SetupTask): Promise<boolean> {
  try {
    await attempt();
    return true;
  } catch (error) {
    log.warn({ err: error }, refused);
    return false;
  }
}
