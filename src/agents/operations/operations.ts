import { setTimeout as delay } from 'node:timers/promises';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type {
  Statements,
  TenantDatabase,
  TenantTransaction,
} from '../../platform/database/database.js';
import type { AgentRow, OperationInput, OperationRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { Operation } from '../../platform/database/tables/agents.js';
import { BadRequestError } from '../../lib/errors.js';
import {
  forgetCredential,
  requestCredential,
  type CredentialChange,
} from '../credentials/agent-credentials.js';
import {
  operationRules,
  type OperationEndStatus,
  type OperationKind,
} from '../../types/operation-kinds.js';

export interface RequestOfOperation {
  readonly id: string;
  readonly kind: OperationKind;
  readonly by: Pick<Requester, 'actor' | 'requestId'>;
  readonly input?: OperationInput | undefined;
  readonly credential?: CredentialChange | undefined;
}

/**
 * Puts down that an operation was asked for, before its supervisor is told: what is written here is
 * carried out, also when whoever wrote it dies right after. Again with the same id it is the same. A
 * removal is never asked for beside another one: what is open of them would grow without bound while
 * nobody carries them out.
 *
 * @returns how it is now: it may have begun, and ended, when it was asked for before. The open removal
 *   where there is one: it was put down and audited with who asked for it first.
 */
export async function requestOperation(
  tenant: TenantDatabase,
  agent: Pick<AgentRow, 'id' | 'userId'>,
  { id, kind, by, input, credential }: RequestOfOperation,
): Promise<OperationRow> {
  return tenant.transaction(async (db) => {
    if (kind === 'delete') {
      // From now on it is gone from lists, and its name is free. Its row lets one request follow the other.
      await db.Agent.update({ desired: 'deleted' }, { where: { id: agent.id } });
      const open = (await db.Operation.findByPk(id)) ? null : await openRemoval(db, agent.id);
      if (open) return open;
    }
    const isNew = await insertRequest(db, { id, agent, kind, by, input });
    const row = await db.Operation.getByPk(id);
    if (row.agentId !== agent.id || row.kind !== kind) {
      throw new BadRequestError('The Idempotency-Key was used for another operation');
    }
    if (row.status !== 'requested') return row;
    if (credential) await requestCredential(db, agent, row.id, credential);
    // Nobody takes it back any more. What can be taken back is audited when it begins.
    if (isNew && operationRules(kind).refused === 'kept') await auditOperation(db, row);
    return row;
  });
}

function openRemoval(db: TenantTransaction, agentId: string): Promise<OperationRow | null> {
  return db.Operation.findOne({
    where: { agentId, kind: 'delete', finishedAt: null },
    order: [['requestedAt', 'ASC']],
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
 * Puts down that the supervisor has a request, before its asker is told: nobody takes it back from here on.
 *
 * @returns false when it was taken back already: it does not begin.
 */
export async function admitOperation(tenant: TenantDatabase, id: string): Promise<boolean> {
  const admitted = await tenant.query(
    'UPDATE operations SET admitted_at = now() WHERE id = $id RETURNING id',
    { id },
  );
  return admitted.length > 0;
}

/**
 * Ends a request that was admitted, and that no supervisor has any more: it does not begin.
 *
 * @returns false when it has begun after all.
 */
export async function failAdmitted(
  tenant: TenantDatabase,
  row: OperationRow,
  error: string,
): Promise<boolean> {
  const { id } = row;
  return tenant.transaction(async (db) => {
    const failed = await db.query(
      `UPDATE operations SET status = 'failed', error = $error, finished_at = now(),
              input = input - 'sealed'
        WHERE id = $id AND status = 'requested' RETURNING id`,
      { id, error },
    );
    if (failed.length === 0) return false;
    await forgetCredential(db, id);
    // Its asker was told that it is accepted.
    await auditOperation(db, row);
    return true;
  });
}

/**
 * Takes a request back that was refused, or whose supervisor was not heard.
 *
 * @returns whether there is no such operation now: one that has begun, or was told as accepted, stays.
 */
export async function withdrawOperation(tenant: TenantDatabase, id: string): Promise<boolean> {
  return tenant.transaction(async (db) => {
    await db.Operation.destroy({ where: { id, status: 'requested', admittedAt: null } });
    if (await db.Operation.findByPk(id, { attributes: ['id'] })) return false;
    await forgetCredential(db, id);
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
    const { id } = request;
    await db.Operation.destroy({ where: { id, status: 'requested', admittedAt: null } });
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
  const isSafe = ({ admittedAt, kind, status }: OperationRow) =>
    status !== 'requested' || admittedAt !== null || operationRules(kind).refused === 'kept';
  const row = await waitUntil(tenant, id, isSafe, { timeoutMs: BEGIN_TIMEOUT_MS });
  return row && isSafe(row) ? row : null;
}

async function waitUntil(
  tenant: TenantDatabase,
  id: string,
  holds: (row: OperationRow) => boolean,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<OperationRow | null> {
  const deadline = performance.now() + timeoutMs;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, LAST_POLL_MS)) {
    const row = await findOperation(tenant, id);
    if (!row || holds(row) || performance.now() >= deadline) return row;
    await delay(Math.min(pause, deadline - performance.now()), undefined, signal && { signal });
  }
}
