import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { TenantTransaction } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { ConflictError } from '../../lib/errors.js';
import { markDeleted } from './delete-agent.js';

export class HostGoneError extends ConflictError {
  override readonly name = 'HostGoneError';

  constructor(host: string) {
    super(
      `The agent's host ${host} was removed, and its memory is lost: remove the agent`,
      'HOST_GONE',
    );
  }
}

/**
 * Removes an agent whose host no longer exists: no supervisor is involved, and no Docker resources exist any
 * more.
 */
export async function removeLostAgent(
  db: TenantTransaction,
  { actor, requestId }: Pick<Requester, 'actor' | 'requestId'>,
  { id: agentId, userId }: Pick<AgentRow, 'id' | 'userId'>,
  operationId: string,
): Promise<void> {
  const at = new Date();
  await db.Operation.bulkCreate(
    [
      {
        id: operationId,
        agentId,
        userId,
        kind: 'delete',
        status: 'succeeded',
        requestedAt: at,
        finishedAt: at,
      },
    ],
    { ignoreDuplicates: true },
  );
  await markDeleted(db, agentId, operationId, at);
  await recordAudit(db, {
    actor,
    userId,
    action: 'agent.delete',
    subject: agentId,
    detail: { operationId },
    requestId,
  });
}
