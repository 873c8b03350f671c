import { setTimeout as delay } from 'node:timers/promises';
import type { TenantDatabase } from '../database/database.js';
import type { AgentRow, OperationInput, OperationRow } from '../database/models.js';
import { selectFrom } from '../database/table.js';
import { Operation } from '../database/tables/agents.js';
import { BadRequestError } from '../errors.js';
import { requestCredential, type CredentialChange } from './agent-credentials.js';
import type { OperationKind } from './operation-kinds.js';

/** The page of an agent's history, newest first. */
export async function listOperations(
  tenant: TenantDatabase,
  agentId: string,
  limit: number,
): Promise<OperationRow[]> {
  return tenant.transaction((db) =>
    db.Operation.findAll({
      where: { agentId },
      order: [
        ['requestedAt', 'DESC'],
        ['id', 'DESC'],
      ],
      limit,
    }),
  );
}

export interface RequestOfOperation {
  readonly id: string;
  readonly kind: OperationKind;
  readonly input?: OperationInput | undefined;
  readonly credential?: CredentialChange | undefined;
}

/**
 * Puts down that an operation was asked for, before its supervisor is told: what is written here is
 * carried out, also when whoever wrote it dies right after. Again with the same id it is the same.
 *
 * @returns when it was put down: another time when it was taken back meanwhile.
 */
export async function requestOperation(
  tenant: TenantDatabase,
  agent: AgentRow,
  { id, kind, input, credential }: RequestOfOperation,
): Promise<Date> {
  return tenant.transaction(async (db) => {
    const requestedAt = new Date();
    await db.Operation.bulkCreate(
      [{ id, agentId: agent.id, userId: agent.userId, kind, input: input ?? null, requestedAt }],
      { ignoreDuplicates: true },
    );
    const row = await db.Operation.getByPk(id);
    if (row.agentId !== agent.id || row.kind !== kind) {
      throw new BadRequestError('The Idempotency-Key was used for another operation');
    }
    if (credential && row.status === 'requested') {
      await requestCredential(db, agent, row.id, credential);
    }
    // From now on it is gone from lists, and its name is free.
    if (kind === 'delete') {
      await db.Agent.update({ desired: 'deleted' }, { where: { id: agent.id } });
    }
    return row.requestedAt;
  });
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

/** Takes a request back that the supervisor refused, or that joined another one. */
export async function withdrawOperation(tenant: TenantDatabase, id: string): Promise<void> {
  await tenant.transaction(async (db) => {
    await db.Operation.destroy({ where: { id, status: 'requested' } });
    await db.AgentCredential.destroy({ where: { operationId: id, state: 'requested' } });
  });
}

const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 500;

/** Waits until the operation ended, or the time is up; returns it as it is then. */
export async function waitForOperation(
  tenant: TenantDatabase,
  id: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<OperationRow | null> {
  const deadline = Date.now() + options.timeoutMs;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, LAST_POLL_MS)) {
    const row = await findOperation(tenant, id);
    if (!row || row.finishedAt !== null || Date.now() >= deadline) return row;
    await delay(Math.min(pause, deadline - Date.now()), undefined, { signal: options.signal });
  }
}
