// @module-tag attack
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ownKeyContext } from '../src/ai/own-keys/own-keys.js';
import { gatewayTokenContext } from '../src/accounts/installations/installations.js';
import { refreshTokenContext } from '../src/accounts/accounts/identities.js';
import { readCredentials, sealCredential } from '../src/agents/credentials/agent-credentials.js';
import { createAgentSecrets, readAgentTokens } from '../src/agents/credentials/agent-secrets.js';
import { openInput, sealInput } from '../src/agents/operations/operation-input.js';
import { IdempotencyStore } from '../src/platform/idempotency/idempotency-store.js';
import { findById } from '../src/money/sessions/session-openings.js';
import { sessionTokenContext } from '../src/money/sessions/session-token.js';
import {
  messageContext,
  signatureContext,
  threadContext,
  webhookContext,
} from '../src/bus/sealed-contexts.js';
import { rotateKeys, SEALED_COLUMNS } from '../src/rotate-keys.js';
import { SecretBox } from '../src/platform/secrets/secret-box.js';
import { queryRows } from './platform/database/catalog.js';
import { insertSql, ROWS } from './platform/database/rows.js';
import { openKey } from '../src/money/wallets/open-key.js';
import { sealKey, type SealedKey } from '../src/money/wallets/wallet-keys.js';
import { testDatabase, type TestDatabase } from './support/postgres.js';

const [first, second] = [
  { id: '1', key: randomBytes(32) },
  { id: '2', key: randomBytes(32) },
];
const before = new SecretBox([first]);
const during = new SecretBox([second, first]);
const after = new SecretBox([second]);

const AGENTS = 110;
const config = { runtime: { token: 'secret' } };

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.('alice', 1) ?? {}));
  await queryRows(database.ownerUrl, insertSql('hosts', ROWS.hosts?.('local', 1) ?? {}));
});
afterAll(() => database?.close());

const tenant = () => database.db.asUser('alice');
const answers = (box: SecretBox) => new IdempotencyStore(database.db, box);
const request = { caller: 'alice', route: 'POST /', key: 'k', requestHash: 'h' };
const ask = (box: SecretBox) =>
  answers(box).once(
    request,
    () => Promise.resolve('made'),
    () => ({ status: 200, headers: {}, body: 'an answer' }),
  );

/** Agents with two tokens each; the first also has a credential and an operation in flight. */
let agentIds: string[];
let operationId: string;
let wallet: SealedKey;

beforeEach(async () => {
  await queryRows(
    database.ownerUrl,
    'TRUNCATE idempotency_keys, identities, payment_sessions, provider_keys, wallets, agents, installations CASCADE',
  );
  agentIds = Array.from({ length: AGENTS }, () => randomUUID());
  operationId = randomUUID();
  const [agentId = ''] = agentIds;
  const model = { plan: 'solo', model: 'm', aiProvider: 'openai' } as const;
  const userId = 'alice';
  await tenant().transaction(async (db) => {
    await db.Agent.bulkCreate(
      agentIds.map((id) => ({ id, userId, name: id, subdomain: id, ...model })),
    );
    for (const id of agentIds) await createAgentSecrets(db, before, { id, userId });
    const { sealed } = sealCredential(before, agentId, { name: 'TOKEN', value: 'secret' });
    const credential = { operationId, agentId, userId, name: 'TOKEN', state: 'present' } as const;
    await db.AgentCredential.create({ ...credential, sealed, updatedAt: new Date() });
    const input = sealInput(before, { agentId, operationId }, { config });
    await db.Operation.create({ id: operationId, agentId, userId, kind: 'configure', input });
  });
  const refreshToken = before.seal('a refresh token', refreshTokenContext('identity'));
  const identity = {
    id: 'identity',
    kind: 'google',
    issuer: 'i',
    subject: 's',
    label: 'l',
  } as const;
  await tenant().transaction((db) =>
    db.Identity.create({ ...identity, userId: 'alice', refreshToken }),
  );
  wallet = sealKey(before, 'alice');
  await tenant().transaction((db) =>
    db.Wallet.create({ id: 'wallet', userId: 'alice', kind: 'user', ...wallet }),
  );
  const provider = 'openai';
  const sealedKey = before.seal('an own key', ownKeyContext('alice', provider));
  await tenant().transaction((db) =>
    db.ProviderKey.create({ userId: 'alice', provider, sealedKey }),
  );
  const id = 'session';
  const token = before.seal('an id', sessionTokenContext(id));
  const session = { ...ROWS.payment_sessions?.('alice', 1), id, sealed_token: token };
  await queryRows(database.ownerUrl, insertSql('payment_sessions', session));
  const sealed_gateway_token = before.seal('a token', gatewayTokenContext('alice'));
  const installation = { ...ROWS.installations?.('alice', 1), sealed_gateway_token };
  await queryRows(database.ownerUrl, insertSql('installations', installation));
  await addBusRows(agentId);
  await ask(before);
});

/** Adds a row with a sealed value to each such table of the bus. */
async function addBusRows(agentId: string): Promise<void> {
  const insert = (table: string, values: Readonly<Record<string, string>>) =>
    queryRows(database.ownerUrl, insertSql(table, { ...ROWS[table]?.('alice', 1), ...values }));
  await insert('bus_webhooks', {
    agent_id: agentId,
    url: 'https://example.com/',
    sealed_secret: before.seal('a webhook secret', webhookContext(agentId)),
  });
  await insert('bus_messages', {
    ...{ from_agent: agentId, to_agent: agentId, message_id: 'm' },
    sealed: before.seal('a message', messageContext(agentId, 'm')),
  });
  await insert('bus_threads', {
    ...{ agent_a: agentId, agent_b: agentId, booking_id: 'b' },
    sealed_terms: before.seal('terms', threadContext(agentId, agentId, 'b')),
  });
  const sealed_text = before.seal('a text', signatureContext('s'));
  await insert('bus_signatures', { id: 's', agent_id: agentId, sealed_text });
}

test('opens everything with the new key after the rotation, and leaves nothing under the old key', async () => {
  const seen: number[] = [];
  const rotated = await rotateKeys(database.db, during, (count) => seen.push(count));
  expect(rotated).toEqual({ rewrapped: 2 * AGENTS + 12, left: 0 });
  expect(seen.length).toBeGreaterThan(3);
  const [agentId = ''] = agentIds;
  for (const id of agentIds.slice(0, 3)) {
    expect(await readAgentTokens(tenant(), after, id)).toHaveLength(2);
  }
  expect(await readCredentials(tenant(), after, agentId)).toEqual({ TOKEN: 'secret' });
  const operation = await tenant().transaction((db) => db.Operation.getByPk(operationId));
  expect(openInput(after, operation)).toEqual({ config });
  const identity = await tenant().transaction((db) => db.Identity.getByPk('identity'));
  const context = refreshTokenContext('identity');
  expect(after.open(identity.refreshToken ?? '', context)).toBe('a refresh token');
  const platform = database.db.asPlatform();
  const key = await openKey(platform, before, wallet.address).catch(() => undefined);
  expect(key).toBeUndefined();
  expect(await openKey(platform, after, wallet.address)).toMatch(/^0x[\da-f]{64}$/);
  const ownKey = await tenant().transaction((db) => db.ProviderKey.findOne({}));
  expect(after.open(ownKey?.sealedKey ?? '', ownKeyContext('alice', 'openai'))).toBe('an own key');
  const session = await findById(database.db, 'session');
  expect(after.open(session?.sealedToken ?? '', sessionTokenContext('session'))).toBe('an id');
  expect(await rotateKeys(database.db, during)).toEqual({ rewrapped: 0, left: 0 });
});

test('replays a stored answer during and after the key rotation', async () => {
  const kept = { kind: 'kept', kept: { status: 200, headers: {}, body: 'an answer' } };
  expect(await ask(during)).toEqual(kept);
  await rotateKeys(database.db, during);
  expect(await ask(during)).toEqual(kept);
});

test('resumes an interrupted key rotation', async () => {
  const ended = rotateKeys(database.db, during, (count) => {
    if (count > 0) throw new Error('ended');
  });
  await expect(ended).rejects.toThrow('ended');
  const { left, rewrapped } = await rotateKeys(database.db, during);
  expect(left).toBe(0);
  expect(rewrapped).toBeLessThan(2 * AGENTS + 12);
});

test('keeps values changed during the key rotation', async () => {
  const [agentId = ''] = agentIds;
  let changes = 0;
  const { left } = await rotateKeys(database.db, during, () => {
    changes += 1;
  });
  expect([left, changes > 0]).toEqual([0, true]);
  // A process that still seals with the old key changes a credential during each pass.
  const change = async (value: string) => {
    const { sealed } = sealCredential(before, agentId, { name: 'TOKEN', value });
    await tenant().query('UPDATE agent_credentials SET sealed = $sealed', { sealed });
  };
  const running = (async () => {
    for (let index = 0; index < 20; index++) await change(`value ${index}`);
  })();
  await rotateKeys(database.db, during);
  await running;
  expect(await readCredentials(tenant(), during, agentId)).toEqual({ TOKEN: 'value 19' });
  await rotateKeys(database.db, during);
  expect(await readCredentials(tenant(), after, agentId)).toEqual({ TOKEN: 'value 19' });
});

test('counts the values that no key opens, and rewraps all others', async () => {
  await tenant().query("UPDATE agent_credentials SET sealed = 'v1.gone.AAAA'");
  expect(await rotateKeys(database.db, during)).toEqual({ rewrapped: 2 * AGENTS + 11, left: 1 });
});

test('covers every column with sealed values', async () => {
  const columns = await queryRows<{ table_name: string; column_name: string }>(
    database.ownerUrl,
    `SELECT table_name, column_name FROM information_schema.columns
      WHERE table_schema = 'public' AND data_type IN ('text', 'jsonb') AND table_name IN
        (SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE')`,
  );
  const holding = new Set<string>();
  for (const { table_name: table, column_name: column } of columns) {
    const [found] = await queryRows<{ is: boolean }>(
      database.ownerUrl,
      `SELECT EXISTS (SELECT FROM ${table} WHERE ${column}::text LIKE '%v1.1.%') AS is`,
    );
    if (found?.is) holding.add(table);
  }
  expect([...holding].sort()).toEqual(SEALED_COLUMNS.map(({ table }) => table).sort());
});

test('covers every column whose name marks its values as sealed', async () => {
  const columns = await queryRows<{ name: string }>(
    database.ownerUrl,
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND starts_with(column_name, 'sealed')
        AND table_name IN (SELECT table_name FROM information_schema.tables
                            WHERE table_type = 'BASE TABLE')`,
  );
  const covered = SEALED_COLUMNS.map(({ sealed, table }) => `${table}.${sealed}`);
  expect(columns.length).toBeGreaterThan(5);
  expect(columns.map(({ name }) => name).filter((name) => !covered.includes(name))).toEqual([]);
});
