import type { TenantDatabase, TenantTransaction } from '../database/database.js';
import type { CrashRecord, WatchdogTransitionRow } from '../database/models.js';
import type { AgentRef } from './agent-ref.js';
import { updateAgent } from './agents.js';
import type { WatchdogTransition } from './watchdog.js';

/** Changes kept of one agent; older ones go. */
const MAX_KEPT = 500;

/** Writes down a change and what is remembered after it. The same one again changes nothing. */
export async function recordTransition(
  db: TenantTransaction,
  { agentId, userId }: AgentRef,
  made: WatchdogTransition,
): Promise<void> {
  const { WatchdogTransition: Transitions } = db;
  const { id, from, cause, reason, memory } = made;
  const at = new Date(memory.since);
  await updateAgent(db, agentId, { watchdog: memory });
  await Transitions.bulkCreate(
    [{ id, agentId, userId, fromState: from, toState: memory.state, cause, reason, at }],
    { ignoreDuplicates: true },
  );
  const old = await Transitions.findAll({
    where: { agentId },
    attributes: ['id'],
    order: [['at', 'DESC']],
    offset: MAX_KEPT,
    limit: MAX_KEPT,
  });
  if (old.length > 0) await Transitions.destroy({ where: { id: old.map((row) => row.id) } });
}

/** Adds what was found out about a crash to the change that it made. */
export async function recordCrash(
  tenant: TenantDatabase,
  transitionId: string,
  crash: CrashRecord,
): Promise<void> {
  await tenant.transaction(async (db) => {
    await db.WatchdogTransition.update({ crash }, { where: { id: transitionId } });
  });
}

/** The latest changes of an agent's watchdog, newest first. */
export async function listTransitions(
  tenant: TenantDatabase,
  agentId: string,
  limit: number,
): Promise<WatchdogTransitionRow[]> {
  return tenant.transaction((db) =>
    db.WatchdogTransition.findAll({
      where: { agentId },
      order: [
        ['at', 'DESC'],
        ['id', 'DESC'],
      ],
      limit,
    }),
  );
}
