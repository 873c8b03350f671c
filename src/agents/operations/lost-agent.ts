import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { AgentRow } from '../../platform/database/models.js';
import { ConflictError } from '../../lib/errors.js';
import { markDeleted } from './delete-agent.js';

export class HostGoneError extends ConflictError {
  override readonly name = 'HostGoneError';

  constructor(host: string) {
    super(`The agent's host ${host} was removed, and its memory is lost: remove the agent`);
  }
}

/** Removes an agent whose host is gone: no supervisor is involved, and no Docker resources are left. */
export async function removeLostAgent(
  { actor, requestId, tenant }: Pick<Requester, 'actor' | 'requestId' | 'tenant'>,
  agent: AgentRow,
  operationId: string,
): Promise<void> {
  await tenant.transaction(async (db) => {
    const at = new Date();
    const { id: agentId, userId } = agent;
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
  });
}
