import { setTimeout as delay } from 'node:timers/promises';
import { recordAudit } from '../audit/audit.js';
import type { Requester } from '../audit/requester.js';
import type { Statements, TenantDatabase } from '../database/database.js';
import type { AgentRow, OperationInput, OperationRow } from '../database/models.js';
import { selectFrom } from '../database/table.js';
import { Operation } from '../database/tables/agents.js';
import { BadRequestError } from '../errors.js';
import { requestCredential, type CredentialChange } from './agent-credentials.js';
import { operationRules, type OperationEndStatus, type OperationKind } from './operation-kinds.js';

export interface RequestOfOperation {
  readonly id: string;
  readonly kind: OperationKind;
  readonly by: Pick<Requester, 'actor' | 'requestId'>;
  readonly input?: OperationInput | undefined;
  readonly credential?: CredentialChange | undefined;
}

/**
 * Puts down that an operation was asked for, before its supervisor is told: what is written here is
 * carried out, also when whoever wrote it dies right after. Again with the same id it is the same.
 *
 * @returns how it is now: it may have begun, and ended, when it was asked for before.
 */
export async function requestOperation(
  tenant: TenantDatabase,
  agent: Pick<AgentRow, 'id' | 'userId'>,
  { id, kind, by, input, credential }: RequestOfOperation,
): Promise<OperationRow> {
  return tenant.transaction(async (db) => {
    const isNew = await insertRequest(db, { id, agent, kind, by, input });
    const row = await db.Operation.getByPk(id);
    if (row.agentId !== agent.id || row.kind !== kind) {
      throw new BadRequestError('The Idempotency-Key was used for another operation');
    }
    if (row.status !== 'requested') return row;
    if (credential) await requestCredential(db, agent, row.id, credential);
    // From now on it is gone from lists, and its name is free.
    if (kind === 'delete') {
      await db.Agent.update({ desired: 'deleted' }, { where: { id: agent.id } });
    }
    // Nobody takes it back any more. What can be taken back is audited when it begins.
    if (isNew && operationRules(kind).refused === 'kept') await auditOperation(db, row);
    return row;
  });
}

async function insertRequest(
  db: Statements,
  { id, agent, kind, by, input }: RequestOfOperation & { agent: Pick<AgentRow, 'id' | 'userId'> },
): Promise<boolean> {
  const inserted = await db.query(
    `INSERT INTO operations (id, agent_id, user_id, kind, input, requested_by, request_id)
     VALUES ($id, $agentId, $userId, $kind, $input::jsonb, $actor, $requestId)
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    {
      id,
      agentId: agent.id,
      userId: agent.userId,
      kind,
      input: input === undefined ? null : JSON.stringify(input),
      actor: by.actor,
      requestId: by.requestId,
    },
  );
  return inserted.length > 0;
}

/**
 * Tells the audit log of an operation, in the transaction in which nobody can take it back any more.
 *
 * @param operationId that of the operation under way which the request has joined.
 */
export async function auditOperation(
  db: Statements,
  { id, agentId, userId, kind, input, requestedBy, requestId }: OperationRow,
  operationId = id,
): Promise<void> {
  // One that an older release has put down: that writes its records itself.
  if (requestedBy === null) return;
  await recordAudit(db, {
    actor: requestedBy,
    userId,
    action: `agent.${kind}`,
    subject: agentId,
    detail: { operationId, ...changed(input) },
    ...(requestId !== null && { requestId }),
  });
}

/** What the audit log names of a change: never what it is changed to. */
function changed(input: OperationInput | null): Record<string, string> {
  const { skill, credential } = input ?? {};
  return {
    ...(skill && { skill: skill.name }),
    ...(credential && { credential: credential.name }),
  };
}

/**
 * Ends those operations of the agent that are open, and of which `only` speaks; answers how many. What
 * was sealed of their input is forgotten.
 */
export async function endOperations(
  db: Statements,
  agentId: string,
  end: Pick<OperationRow, 'error'> & { readonly status: OperationEndStatus },
  only: { readonly id: string } | { readonly others: string } | 'all',
): Promise<number> {
  const which = only === 'all' ? 'true' : 'id' in only ? 'id = $id' : 'id <> $id';
  const ended = await db.query(
    `UPDATE operations SET status = $status, error = $error, finished_at = now(), input = input - 'sealed'
      WHERE agent_id = $agentId AND finished_at IS NULL AND ${which} RETURNING id`,
    { agentId, ...end, ...(only !== 'all' && { id: 'id' in only ? only.id : only.others }) },
  );
  return ended.length;
}

/** Null when there is none, or none of this tenant's. */
export async function findOperation(
  tenant: TenantDatabase,
  id: string,
): Promise<OperationRow | null> {
  const sql = `${selectFrom(Operation)} WHERE id = $id`;
  const [operation] = await tenant.query<OperationRow>(sql, { id });
  return operation ?? null;
}

/**
 * Takes a request back that was refused, or whose supervisor was not heard.
 *
 * @returns whether there is no such operation now: one that has begun stays.
 */
export async function withdrawOperation(tenant: TenantDatabase, id: string): Promise<boolean> {
  return tenant.transaction(async (db) => {
    await db.Operation.destroy({ where: { id, status: 'requested' } });
    if (await db.Operation.findByPk(id, { attributes: ['id'] })) return false;
    await db.AgentCredential.destroy({ where: { operationId: id, state: 'requested' } });
    return true;
  });
}

/** Puts one operation in the place of a request for the same. */
export async function joinOperation(
  tenant: TenantDatabase,
  request: OperationRow,
  joined: OperationRow,
): Promise<void> {
  await tenant.transaction(async (db) => {
    await db.Operation.destroy({ where: { id: request.id, status: 'requested' } });
    // What is never taken back was audited when it was asked for.
    if (operationRules(request.kind).refused === 'withdrawn') {
      await auditOperation(db, request, joined.id);
    }
  });
}

const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 500;

/** Waits until the operation ended, or the time is up; returns it as it is then. */
export function waitForOperation(
  tenant: TenantDatabase,
  id: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<OperationRow | null> {
  return waitUntil(tenant, id, ({ finishedAt }) => finishedAt !== null, options);
}

/** What is about to begin does so in a moment, or was taken back. */
const BEGIN_TIMEOUT_MS = 2_000;

/** Waits until nobody can take the operation back any more; null when somebody has, or still can. */
export async function waitUntilBegun(
  tenant: TenantDatabase,
  id: string,
): Promise<OperationRow | null> {
  const isSafe = ({ kind, status }: OperationRow) =>
    status !== 'requested' || operationRules(kind).refused === 'kept';
  const row = await waitUntil(tenant, id, isSafe, { timeoutMs: BEGIN_TIMEOUT_MS });
  return row && isSafe(row) ? row : null;
}

async function waitUntil(
  tenant: TenantDatabase,
  id: string,
  holds: (row: OperationRow) => boolean,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<OperationRow | null> {
  const deadline = Date.now() + timeoutMs;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, LAST_POLL_MS)) {
    const row = await findOperation(tenant, id);
    if (!row || holds(row) || Date.now() >= deadline) return row;
    await delay(Math.min(pause, deadline - Date.now()), undefined, signal && { signal });
  }
}
