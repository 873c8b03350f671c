import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { OperationStore } from '../../../src/agents/operations/operation-store.js';
import { VerificationStore } from '../../../src/agents/verification/verification-store.js';
import { findVerification } from '../../../src/agents/verification/verifications.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import type { OperationKind } from '../../../src/types/operation-kinds.js';
import type { Check } from '../../../src/types/verification.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';

const CHECKS: readonly Check[] = [{ name: 'gateway', ok: true, detail: 'live' }];

let database: TestDatabase;
let operations: OperationStore;
let verifications: VerificationStore;
let agent: AgentRef;

beforeAll(async () => {
  database = await testDatabase();
  operations = new OperationStore(database.db, testSecrets());
  verifications = new VerificationStore(database.db);
});
afterAll(() => database?.close());

beforeEach(async () => {
  const userId = randomUUID();
  agent = { agentId: `${userId}-agent-1`, userId, host: 'local' };
  await owner(insertSql('users', ROWS.users?.(userId, 1) ?? {}));
  await owner(insertSql('agents', { ...ROWS.agents?.(userId, 1), desired: 'running' }));
});

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

/** Opens a verification of the agent, as a request does. */
async function opened(): Promise<string> {
  const id = randomUUID();
  await owner(
    `INSERT INTO agent_verifications (id, agent_id, user_id)
       VALUES ('${id}', '${agent.agentId}', '${agent.userId}')`,
  );
  return id;
}

/** Stores a current verification of the agent. */
async function verified(): Promise<string> {
  const id = await opened();
  await verifications.recordMeasured(id, { checks: CHECKS, image: 'sha256:1' });
  await verifications.finish({ id, agent });
  expect(await shown()).toMatchObject({ verified: true, checks: CHECKS });
  return id;
}

const shown = () => findVerification(database.db.asUser(agent.userId), agent.agentId);
const statesOf = async (...ids: readonly string[]) => {
  const rows = await owner('SELECT id, state FROM agent_verifications');
  return ids.map((id) => rows.find((row) => row.id === id)?.state);
};

async function begin(kind: OperationKind): Promise<void> {
  const id = randomUUID();
  const row = { ...ROWS.operations?.(agent.userId, 1), id, kind, status: 'requested' };
  await owner(insertSql('operations', row));
  await owner(`UPDATE operations SET input = '{}', finished_at = NULL WHERE id = '${id}'`);
  expect(await operations.begin(agent, { id, kind, runId: 'run' })).toBe('begun');
}

test.each(['configure', 'update', 'reset-memory', 'restore', 'reset-empty'] as const)(
  '%s clears the verification when it begins, and ends an unfinished one',
  async (kind) => {
    const [before, open] = [await verified(), await opened()];
    await begin(kind);
    expect(await shown()).toEqual({
      agentId: agent.agentId,
      verified: false,
      verificationType: null,
      attestationUid: null,
      verifiedAt: null,
      checks: [],
      attestation: null,
    });
    expect(await statesOf(before, open)).toEqual(['past', 'cancelled']);
  },
);

test.each(['start', 'stop', 'restart', 'repair'] as const)(
  '%s keeps the verification, and ends an unfinished one',
  async (kind) => {
    const [before, open] = [await verified(), await opened()];
    await begin(kind);
    expect(await shown()).toMatchObject({ verified: true, checks: CHECKS });
    expect(await statesOf(before, open)).toEqual(['current', 'cancelled']);
  },
);

test('a verification that was cancelled is neither measured nor made current', async () => {
  const id = await opened();
  await begin('restart');
  expect(await verifications.recordMeasured(id, { checks: CHECKS, image: '' })).toBe(false);
  await verifications.finish({ id, agent });
  await verifications.fail(id);
  expect(await statesOf(id)).toEqual(['cancelled']);
  expect(await shown()).toMatchObject({ verified: false, verificationType: null });
});

test('an operation that begins at the end of a verification has precedence', async () => {
  for (let round = 0; round < 20; round++) {
    const id = await opened();
    await verifications.recordMeasured(id, { checks: CHECKS, image: '' });
    await Promise.all([verifications.finish({ id, agent }), begin('configure')]);
    expect(await shown()).toMatchObject({ verified: false, verificationType: null });
    expect(await verifications.open(agent.agentId)).toBeUndefined();
  }
});

test('a newer verification replaces the current one, and a repeated step changes nothing', async () => {
  const first = await verified();
  const id = await opened();
  const failing = [{ ...CHECKS[0], name: 'gateway', ok: false, detail: 'not ready' }] as const;
  for (const _ of [1, 2]) {
    await verifications.recordMeasured(id, { checks: failing, image: 'sha256:2' });
  }
  for (const _ of [1, 2]) await verifications.finish({ id, agent });
  expect(await statesOf(first, id)).toEqual(['past', 'current']);
  const found = await shown();
  expect(found).toMatchObject({ verified: false, verificationType: 'runtime', checks: failing });
  expect(found.verifiedAt).toBeInstanceOf(Date);
});
