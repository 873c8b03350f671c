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
import { forgetInstall, requestInstall, type SkillInstall } from '../skills/installed-skills.js';
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
  readonly install?: SkillInstall | undefined;
}

/**
 * Stores a request before its supervisor is notified, so that it outlives this process. Idempotent by id.
 * @returns the current row, which may have begun or ended; for a removal the open one, if any, so that
 * unprocessed removals cannot accumulate.
 */
export async function requestOperation(
  tenant: TenantDatabase,
  agent: Pick<AgentRow, 'id' | 'userId'>,
  request: RequestOfOperation,
): Promise<OperationRow> {
  return tenant.transaction((db) => storeOperation(db, agent, request));
}

/** Stores a request in the caller's transaction, as `requestOperation` does in one of its own. */
export async function storeOperation(
  db: TenantTransaction,
  agent: Pick<AgentRow, 'id' | 'userId'>,
  { id, kind, by, input, credential, install }: RequestOfOperation,
): Promise<OperationRow> {
  if (kind === 'delete') {
    // Hides the agent from lists and frees its name. The row lock serializes concurrent removals.
    await db.Agent.update({ desired: 'deleted' }, { where: { id: agent.id } });
    const open = (await db.Operation.findByPk(id)) ? null : await openRemoval(db, agent.id);
    if (open) return open;
  }
  const isNew = await insertRequest(db, { id, agent, kind, by, input });
  const row = await db.Operation.getByPk(id);
  if (row.agentId !== agent.id || row.kind !== kind) {
    throw new BadRequestError('The Idempotency-Key was used for another operation: use a new key');
  }
  if (row.status !== 'requested') return row;
  if (credential) await requestCredential(db, agent, row.id, credential);
  if (install) await requestInstall(db, agent, row.id, install);
  // A kept request cannot be withdrawn, so it is audited now; others are audited when they begin.
  if (isNew && operationRules(kind).onRefusal === 'kept') await auditOperation(db, row);
  return row;
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

/** Writes an operation, or the one that it joined, to the audit log once it cannot be withdrawn. */
export async function auditOperation(
  db: Statements,
  { id, agentId, userId, kind, input, requestedBy, requestId }: OperationRow,
  operationId = id,
): Promise<void> {
  // Requests stored by an older release have no requester; that release writes its own audit records.
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

/** Returns the names of changed items for the audit log, never their values. */
function changed(input: OperationInput | null): Record<string, string> {
  const { skill, credential, install } = input ?? {};
  return {
    ...(skill && { skill: skill.name }),
    ...(install && { skill: install.name, version: String(install.version) }),
    ...(credential && { credential: credential.name }),
  };
}

/** Ends the agent's open operations that `only` selects, and returns how many. */
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

export async function findOperation(
  tenant: TenantDatabase,
  id: string,
): Promise<OperationRow | null> {
  const sql = `${selectFrom(Operation)} WHERE id = $id`;
  const [operation] = await tenant.query<OperationRow>(sql, { id });
  return operation ?? null;
}

/** Marks a request as accepted; it cannot be withdrawn afterwards. False when it was already withdrawn. */
export async function admitOperation(tenant: TenantDatabase, id: string): Promise<boolean> {
  const admitted = await tenant.query(
    'UPDATE operations SET admitted_at = now() WHERE id = $id RETURNING id',
    { id },
  );
  return admitted.length > 0;
}

/** Ends an admitted request that no supervisor has any more. False when the operation has begun. */
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
    await forgetRequested(db, id);
    // Audited because its requester was notified of the acceptance.
    await auditOperation(db, row);
    return true;
  });
}

/** Withdraws a refused or unanswered request. False if the operation has begun or was admitted. */
export async function withdrawOperation(tenant: TenantDatabase, id: string): Promise<boolean> {
  return tenant.transaction(async (db) => {
    await db.Operation.destroy({ where: { id, status: 'requested', admittedAt: null } });
    if (await db.Operation.findByPk(id, { attributes: ['id'] })) return false;
    await forgetRequested(db, id);
    return true;
  });
}

async function forgetRequested(db: TenantTransaction, id: string): Promise<void> {
  await forgetCredential(db, id);
  await forgetInstall(db, id);
}

export async function joinOperation(
  tenant: TenantDatabase,
  request: OperationRow,
  joined: OperationRow,
): Promise<void> {
  await tenant.transaction(async (db) => {
    const { id } = request;
    await db.Operation.destroy({ where: { id, status: 'requested', admittedAt: null } });
    await forgetInstall(db, id);
    // A kept request was audited when it was stored.
    if (operationRules(request.kind).onRefusal === 'withdrawn') {
      await auditOperation(db, request, joined.id);
    }
  });
}

const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 500;

export function waitForOperation(
  tenant: TenantDatabase,
  id: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<OperationRow | null> {
  return waitUntil(tenant, id, ({ finishedAt }) => finishedAt !== null, options);
}

/** Milliseconds to wait: an operation normally begins, or is withdrawn, at once. */
const BEGIN_TIMEOUT_MS = 2_000;

/** Waits until the operation cannot be withdrawn; null when it was withdrawn or still can be. */
export async function waitUntilBegun(
  tenant: TenantDatabase,
  id: string,
): Promise<OperationRow | null> {
  const isSafe = ({ admittedAt, kind, status }: OperationRow) =>
    status !== 'requested' || admittedAt !== null || operationRules(kind).onRefusal === 'kept';
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
