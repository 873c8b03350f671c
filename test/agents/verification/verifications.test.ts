import { randomUUID } from 'node:crypto';
import { zeroAddress } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { OperationStore } from '../../../src/agents/operations/operation-store.js';
import { Attester } from '../../../src/agents/verification/attester.js';
import { VerificationStore } from '../../../src/agents/verification/verification-store.js';
import { findVerification, Verifications } from '../../../src/agents/verification/verifications.js';
import { DockerAwayError } from '../../../src/lib/errors.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import type { Check } from '../../../src/types/verification.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';

const CHECKS: readonly Check[] = [{ name: 'gateway', ok: true, detail: 'live' }];

const never = new AbortController().signal;

let database: TestDatabase;
let store: VerificationStore;
let agent: AgentRef;
let isAway: boolean;
let verifications: Verifications;

beforeAll(async () => {
  database = await testDatabase();
  store = new VerificationStore(database.db);
  const require = () => (isAway ? Promise.reject(new DockerAwayError()) : Promise.resolve());
  verifications = new Verifications({ database: database.db, engines: { require } });
});
afterAll(() => database?.close());

beforeEach(async () => {
  isAway = false;
  const userId = randomUUID();
  agent = { agentId: `${userId}-agent-1`, userId, host: 'local' };
  await owner(insertSql('users', ROWS.users?.(userId, 1) ?? {}));
  const running = { desired: 'running', status: 'active' };
  await owner(insertSql('agents', { ...ROWS.agents?.(userId, 1), ...running }));
});

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

const verify = (tenant = database.db.asUser(agent.userId)) => {
  const { agentId, userId } = agent;
  const requester = { actor: userId, requestId: 'r', idempotencyId: randomUUID() };
  return verifications.verify({ ...requester, tenant }, agentId, never);
};

const rows = () =>
  owner(`SELECT state FROM agent_verifications WHERE agent_id = '${agent.agentId}'`);

async function beginConfigure(): Promise<void> {
  const id = randomUUID();
  const { userId } = agent;
  const row = { ...ROWS.operations?.(userId, 1), id, kind: 'configure', status: 'requested' };
  await owner(insertSql('operations', row));
  await owner(`UPDATE operations SET input = '{}', finished_at = NULL WHERE id = '${id}'`);
  const operations = new OperationStore(database.db, testSecrets());
  await operations.begin(agent, { id, kind: 'configure', runId: 'run' });
}

test('is a 503 with a time to retry while the host cannot be reached, and stores nothing', async () => {
  isAway = true;
  await expect(verify()).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining('its host local did not answer'),
    facts: { retryAfter: expect.any(Number) },
  });
  expect(await rows()).toEqual([]);
});

test.each([
  ['is stopped', `desired = 'stopped'`],
  ['is starting', `status = 'pending'`],
])('is a 409 while the agent %s, and stores nothing', async (_, set) => {
  await owner(`UPDATE agents SET ${set} WHERE id = '${agent.agentId}'`);
  await expect(verify()).rejects.toMatchObject({ status: 409, code: 'AGENT_NOT_RUNNING' });
  expect(await rows()).toEqual([]);
});

test('is one measurement for fifty requests at once', async () => {
  const tenant = database.db.asUser(agent.userId);
  const joining = vi.spyOn(tenant, 'transaction');
  const requests = Promise.all(Array.from({ length: 50 }, () => verify(tenant)));
  const joined = () =>
    joining.mock.settledResults.filter(({ type }) => type === 'fulfilled').length;
  // A request that comes later begins a measurement of its own.
  await expect.poll(joined).toBe(50);
  expect(await rows()).toEqual([{ state: 'measuring' }]);
  const open = await store.open(agent.agentId);
  if (!open) throw new Error('a verification is open');
  await store.recordMeasured(open.id, { checks: CHECKS, image: 'sha256:1' });
  await store.finish(open);
  for (const each of await requests) expect(each).toMatchObject({ verified: true, checks: CHECKS });
  expect(await rows()).toEqual([{ state: 'current' }]);
});

test('loses against a configuration, by all of fifty requests at once', async () => {
  const [, ...ends] = await Promise.allSettled([
    beginConfigure(),
    ...Array.from({ length: 50 }, () => verify()),
  ]);
  for (const end of ends) {
    expect(end).toMatchObject({ reason: { status: 409, code: 'OPERATION_IN_FLIGHT' } });
  }
  expect((await rows()).filter(({ state }) => state !== 'cancelled')).toEqual([]);
});

describe('an attestation', () => {
  const domain = { chainId: 1, verifyingContract: zeroAddress };
  const measured = async () => {
    const id = randomUUID();
    await owner(
      `INSERT INTO agent_verifications (id, agent_id, user_id)
         VALUES ('${id}', '${agent.agentId}', '${agent.userId}')`,
    );
    await store.recordMeasured(id, { checks: CHECKS, image: 'sha256:1' });
    return id;
  };
  const shown = () =>
    findVerification(database.db.asUser(agent.userId), agent.agentId).then(
      ({ attestation }) => attestation,
    );

  test('is by the operator for the wallet of the agent, or for none', async () => {
    const privateKey = generatePrivateKey();
    const attester = new Attester({ database: database.db, domain, privateKey });
    for (const recipient of [zeroAddress, privateKeyToAddress(generatePrivateKey())]) {
      if (recipient !== zeroAddress) {
        const wallet = { ...ROWS.wallets?.(agent.userId, 1), address: recipient.toLowerCase() };
        await owner(insertSql('wallets', wallet));
      }
      const id = await measured();
      expect(await attester.sign(id)).toBe(true);
      await store.finish({ id, agent });
      expect(await shown()).toMatchObject({
        signer: privateKeyToAddress(privateKey),
        domain,
        message: { recipient },
      });
    }
  });

  test('is not made without a key, or for a measurement that has ended', async () => {
    const id = await measured();
    const without = new Attester({ database: database.db, domain, privateKey: undefined });
    expect(await without.sign(id)).toBe(false);
    await store.fail(id);
    const privateKey = generatePrivateKey();
    const attester = new Attester({ database: database.db, domain, privateKey });
    expect(await attester.sign(id)).toBe(false);
  });
});
