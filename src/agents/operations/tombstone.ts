import type { TenantTransaction } from '../../platform/database/database.js';
import { updateAgent } from '../agents/agents.js';
import { endOperations } from './operations.js';

/** Why what was asked for beside the removal of an agent is not carried out. */
export const AGENT_IS_GONE = 'The agent is removed';

/**
 * Puts an agent down as removed, and forgets its secrets, messages and archives, and
 * what its operations brought; what else was under
 * way or asked for is cancelled.
 *
 * @param operationId the operation that removed it, whose own end is put down elsewhere.
 */
export async function buryAgent(
  db: TenantTransaction,
  agentId: string,
  operationId: string,
  at: Date,
): Promise<void> {
  for (const table of [db.AgentSecret, db.AgentCredential, db.AgentArchive, db.Message]) {
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
}
