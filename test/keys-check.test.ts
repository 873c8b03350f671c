import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { refreshTokenContext } from '../src/accounts/accounts/identities.js';
import { checkKeys } from '../src/keys-check.js';
import { SecretBox } from '../src/platform/secrets/secret-box.js';
import { queryRows } from './platform/database/catalog.js';
import { insertSql, ROWS } from './platform/database/rows.js';
import { testDatabase, type TestDatabase } from './support/postgres.js';

const [old, current, other] = [randomBytes(32), randomBytes(32), randomBytes(32)];

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  await queryRows(database.ownerUrl, insertSql('users', ROWS.users?.('alice', 1) ?? {}));
});
afterAll(() => database?.close());
beforeEach(() => queryRows(database.ownerUrl, 'TRUNCATE identities CASCADE'));

/** Stores a secret of each key. */
async function seal(...keys: readonly { readonly id: string; readonly key: Buffer }[]) {
  const fixed = { kind: 'google', issuer: 'i', label: 'l', userId: 'alice' } as const;
  for (const each of keys) {
    const refreshToken = new SecretBox([each]).seal('a token', refreshTokenContext(each.id));
    await database.db
      .asUser('alice')
      .transaction((db) =>
        db.Identity.create({ ...fixed, id: each.id, subject: each.id, refreshToken }),
      );
  }
}

async function findingsOf(...ring: readonly (readonly [id: string, key: Buffer])[]) {
  const findings = await checkKeys(database.db, {
    ENCRYPTION_KEYS: ring.map(([id, key]) => `${id}:${key.toString('base64')}`).join(','),
    INSTALLATION_ID: '0'.repeat(16),
  });
  return findings.map(({ status, text }) => `${status}: ${text}`);
}

test('names what still needs an old key', async () => {
  await seal({ id: '1', key: old }, { id: '2', key: current });
  expect(await findingsOf(['2', current], ['1', old])).toEqual([
    'warning: 1 secret sealed with the old key 1: run scripts/rotate-keys.js before you remove the key.',
    'ok: Key 2 seals, and opens 1 secret.',
  ]);
});

test('names an old key that nothing needs', async () => {
  expect(await findingsOf(['2', current], ['1', old])).toEqual([
    'ok: Key 2 seals; no secret is sealed with it yet.',
    'ok: Key 1 opens no secret any more: you can remove it from ENCRYPTION_KEYS.',
  ]);
});

test('names a missing key, and a wrong key of the right name', async () => {
  await seal({ id: '1', key: old }, { id: '2', key: current });
  expect(await findingsOf(['2', other])).toEqual([
    'failure: 1 secret sealed with key 1 cannot be opened: add key 1 to ENCRYPTION_KEYS.',
    expect.stringMatching(/^failure: Key 2 does not open 1 secret .* set the right key/),
  ]);
});

test('changes no secret', async () => {
  await seal({ id: '2', key: current });
  const before = await queryRows(database.ownerUrl, 'SELECT refresh_token FROM identities');
  await findingsOf(['2', current]);
  expect(await queryRows(database.ownerUrl, 'SELECT refresh_token FROM identities')).toEqual(
    before,
  );
});
