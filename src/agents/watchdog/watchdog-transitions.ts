import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { CrashRecord } from '../../platform/database/models.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { AgentGoneError, presentAgent } from '../agents/agents.js';
import type { PastTransition, WatchdogMemory, WatchdogTransition } from '../../types/watchdog.js';

/** Transitions kept per agent; older ones are deleted. */
const MAX_KEPT = 500;

/** A newer transition of the agent is already stored, so the writer's state is stale. */
export class SupersededError extends Error {
  override readonly name = 'SupersededError';

  constructor(readonly agentId: string) {
    super('A newer state of the agent is already stored');
  }
}

const REMEMBER = `
  UPDATE agents SET watchdog = $memory::jsonb, updated_at = now()
  WHERE id = $agentId AND deleted_at IS NULL
    AND COALESCE((watchdog ->> 'version')::int, 0) < $version
  RETURNING id`;

const REMEMBER_ATTEMPT = `
  UPDATE agents SET watchdog = $memory::jsonb, updated_at = now()
  WHERE id = $agentId AND deleted_at IS NULL
    AND COALESCE((watchdog ->> 'version')::int, 0) = $version
    AND COALESCE((watchdog ->> 'lastRepair')::numeric, 0) < $lastRepair
  RETURNING id`;

/**
 * Stores a transition and the resulting watchdog memory, once; false if the transition is stored already.
 * @throws AgentGoneError, SupersededError
 */
export async function recordTransition(
  db: TenantTransaction,
  { agentId, userId }: AgentRef,
  made: WatchdogTransition,
): Promise<boolean> {
  const { WatchdogTransition: Transitions } = db;
  const { id, from, cause, reason, memory } = made;
  const { version } = memory;
  const written = await db.query(REMEMBER, { agentId, memory: JSON.stringify(memory), version });
  if (written.length === 0) {
    if (!(await presentAgent(db, agentId))) throw new AgentGoneError(agentId);
    if (await Transitions.findByPk(id, { attributes: ['id'] })) return false;
    throw new SupersededError(agentId);
  }
  const at = new Date(memory.since);
  const change = { fromState: from, toState: memory.state, cause, reason, at };
  await Transitions.create({ id, agentId, userId, ...change });
  await forgetOld(db, agentId);
  return true;
}

/** Stores only past transitions, with their original times. Idempotent. */
export async function recordPast(
  db: TenantTransaction,
  { agentId, userId }: AgentRef,
  past: readonly PastTransition[],
): Promise<void> {
  await db.WatchdogTransition.bulkCreate(
    past.map(({ id, from, cause, reason, memory, crash }) => ({
      id,
      agentId,
      userId,
      fromState: from,
      toState: memory.state,
      cause,
      reason,
      at: new Date(memory.since),
      // The last log lines are left out: redacting them needs the agent's secrets.
      crash: crash ? { ...crash, lastLines: [] } : null,
    })),
    { ignoreDuplicates: true },
  );
  await forgetOld(db, agentId);
}

async function forgetOld({ WatchdogTransition: Transitions }: TenantTransaction, agentId: string) {
  const old = await Transitions.findAll({
    where: { agentId },
    attributes: ['id'],
    order: [['at', 'DESC']],
    offset: MAX_KEPT,
    limit: MAX_KEPT,
  });
  if (old.length > 0) await Transitions.destroy({ where: { id: old.map((row) => row.id) } });
}

/** Stores the beginning of a repair attempt; false when a newer state is stored. @throws AgentGoneError */
export async function recordAttempt(
  db: TenantTransaction,
  { agentId }: AgentRef,
  memory: WatchdogMemory,
): Promise<boolean> {
  const { version, lastRepair } = memory;
  const values = { agentId, memory: JSON.stringify(memory), version, lastRepair };
  if ((await db.query(REMEMBER_ATTEMPT, values)).length > 0) return true;
  if (!(await presentAgent(db, agentId))) throw new AgentGoneError(agentId);
  return false;
}

export async function recordCrash(
  tenant: TenantDatabase,
  transitionId: string,
  crash: CrashRecord,
): Promise<void> {
  await tenant.transaction(async (db) => {
    await db.WatchdogTransition.update({ crash }, { where: { id: transitionId } });
  });
}
