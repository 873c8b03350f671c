import { randomUUID } from 'node:crypto';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { requestOperation, withdrawOperation } from './operations.js';
import { supervisedOf, type AgentSupervisors } from './supervisors.js';

const ACTOR = 'platform';

/** Stops an agent whose memory is full, by an ordinary operation. @throws ConflictError, UnavailableError */
export async function stopFullAgent(
  {
    database,
    supervisors,
  }: { readonly database: Database; readonly supervisors: AgentSupervisors },
  agent: AgentRow,
  reason: string,
): Promise<void> {
  const tenant = database.asUser(agent.userId);
  const id = randomUUID();
  const by = { actor: ACTOR, requestId: id };
  const row = await requestOperation(tenant, agent, { id, kind: 'stop', by, input: { reason } });
  let isRequested = false;
  try {
    const requested = await supervisors.request(supervisedOf(agent), 'stop', id, row.requestedAt);
    // Another operation already stops the agent.
    isRequested = requested.operationId === id;
  } finally {
    if (!isRequested) await withdrawOperation(tenant, id);
  }
}
