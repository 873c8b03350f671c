import { Op } from 'sequelize';
import { poll } from '../../dev/poll.js';
import type { Database } from '../../src/platform/database/database.js';

const POLL_MS = 500;
const TIMEOUT_MS = 300_000;

/** Recovery of an agent from a fault, in milliseconds. */
export interface Recovery {
  /** Time from the fault until the watchdog recorded the agent as degraded. */
  readonly detected: number;
  /** Time from `degraded` until the watchdog recorded the agent as running. */
  readonly healed: number;
}

/** Waits until the watchdog has recorded the agent as running again. */
export async function recoveryAfter(
  database: Database,
  agentId: string,
  deedAt: number,
): Promise<Recovery> {
  const recovery = await poll(() => find(database, agentId, deedAt), {
    timeoutMs: TIMEOUT_MS,
    everyMs: POLL_MS,
  });
  if (!recovery) throw new Error(`Agent ${agentId} did not recover`);
  return recovery;
}

async function find(
  database: Database,
  agentId: string,
  deedAt: number,
): Promise<Recovery | undefined> {
  const changes = await database.asPlatform().transaction((db) =>
    db.WatchdogTransition.findAll({
      where: { agentId, at: { [Op.gte]: new Date(deedAt) } },
      order: [['at', 'ASC']],
    }),
  );
  const degraded = changes.find(({ toState }) => toState === 'degraded')?.at.getTime();
  const running = changes.find(({ toState }) => toState === 'running')?.at.getTime();
  if (degraded === undefined || running === undefined) return undefined;
  return { detected: degraded - deedAt, healed: running - degraded };
}
