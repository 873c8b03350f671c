import type { Transaction } from 'sequelize';
import type { TenantDatabase } from '../database/database.js';
import type { CrashRecord, Models, WatchdogTransitionRow } from '../database/models.js';
import type { AgentRef } from './agent-ref.js';
import type { WatchdogTransition } from './watchdog.js';

/** Changes kept of one agent; older ones go. */
const MAX_KEPT = 500;

/** Writes down a change and what is remembered after it. The same one again changes nothing. */
export async function recordTransition(
  models: Models,
  { agentId, userId }: AgentRef,
  made: WatchdogTransition,
  transaction: Transaction,
): Promise<void> {
  const { Agent, WatchdogTransition: Transitions } = models;
  const { id, from, cause, reason, memory } = made;
  const at = new Date(memory.since);
  await Agent.update(
    { watchdog: memory },
    { where: { id: agentId, deletedAt: null }, transaction },
  );
  await Transitions.bulkCreate(
    [
      {
        id,
        agentId,
        userId,
        fromState: from,
        toState: memory.state,
        cause,
        reason,
        crash: null,
        at,
      },
    ],
    { ignoreDuplicates: true, transaction },
  );
  const old = await Transitions.findAll({
    where: { agentId },
    attributes: ['id'],
    order: [['at', 'DESC']],
    offset: MAX_KEPT,
    limit: MAX_KEPT,
    raw: true,
    transaction,
  });
  if (old.length > 0) {
    await Transitions.destroy({ where: { id: old.map((row) => row.id) }, transaction });
  }
}

/** Adds what was found out about a crash to the change that it made. */
export async function recordCrash(
  tenant: TenantDatabase,
  transitionId: string,
  crash: CrashRecord,
): Promise<void> {
  await tenant.transaction(async (transaction) => {
    await tenant.models.WatchdogTransition.update(
      { crash },
      { where: { id: transitionId }, transaction },
    );
  });
}

/** The latest changes of an agent's watchdog, newest first. */
export async function listTransitions(
  tenant: TenantDatabase,
  agentId: string,
  limit: number,
): Promise<WatchdogTransitionRow[]> {
  return tenant.transaction((transaction) =>
    tenant.models.WatchdogTransition.findAll({
      where: { agentId },
      order: [
        ['at', 'DESC'],
        ['id', 'DESC'],
      ],
      limit,
      raw: true,
      transaction,
    }),
  );
}
