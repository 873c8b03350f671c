import type { TenantTransaction } from '../../platform/database/database.js';
import { updateAgent } from '../agents/agents.js';
import { endOperations } from './operations.js';
import { removeTasks } from './remove-tasks.js';

export const AGENT_IS_GONE = 'The agent is removed';

/**
 * Marks an agent as removed, deletes its data and cancels its operations except the caller's `operationId`.
 */
export async function markDeleted(
  db: TenantTransaction,
  agentId: string,
  operationId: string,
  at: Date,
): Promise<void> {
  const { AgentArchive, AgentCredential, AgentSecret, AgentSkill, Message } = db;
  for (const table of [AgentSecret, AgentCredential, AgentSkill, AgentArchive, Message]) {
    await table.destroy({ where: { agentId } });
  }
  const cancelled = { status: 'cancelled', error: AGENT_IS_GONE } as const;
  await endOperations(db, agentId, cancelled, { others: operationId });
  await db.Operation.update({ input: null }, { where: { agentId } });
  await updateAgent(db, agentId, {
    desired: 'deleted',
    port: null,
    config: {},
    previousRelease: null,
    deletedAt: at,
  });
  // After the agent's row is locked: no task is created in between.
  await removeTasks(db, { agentId });
}
