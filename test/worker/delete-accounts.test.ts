import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { requestAccountDeletion } from '../../src/accounts/account-deletions.js';
import { UnavailableError } from '../../src/errors.js';
import { deleteAccounts } from '../../worker/delete-accounts.js';
import { queryRows } from '../database/catalog.js';
import { newUser, testDatabase, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() => queryRows(database.ownerUrl, 'DELETE FROM account_deletions'));
afterAll(() => database?.close());

/** Somebody whose account is to be deleted; nobody was told. */
async function leaving(): Promise<string> {
  const id = await newUser(database);
  const origin = { address: '192.0.2.1', requestId: randomUUID() };
  await requestAccountDeletion(database.db, id, `${id}@example.com`, origin);
  return id;
}

const look = (start: (userId: string) => Promise<void>) =>
  deleteAccounts({ database: database.db, runs: { start }, log: pino({ enabled: false }) });

/** Runs that write down that they were started. */
function runs() {
  const started: string[] = [];
  const start = (userId: string) => Promise.resolve(void started.push(userId));
  return { started, start };
}

const later = (seconds: number) =>
  queryRows(
    database.ownerUrl,
    `UPDATE account_deletions SET looked_at = looked_at - interval '${seconds} seconds'`,
  );

test('what nobody has started is found, by one look alone', async () => {
  const ids = await Promise.all(Array.from({ length: 20 }, leaving));
  const { started, start } = runs();
  await Promise.all([look(start), look(start), look(start)]);
  expect(started.toSorted()).toEqual(ids.toSorted());
  await look(start);
  expect(started).toHaveLength(20);
});

test('what is not over is started again and again, in case that it was ended', async () => {
  const id = await leaving();
  const { started, start } = runs();
  await look(start);
  await later(29);
  await look(start);
  expect(started).toEqual([id]);
  await later(2);
  await look(start);
  expect(started).toEqual([id, id]);
});

test('one that cannot be started keeps no other from it, and is tried again', async () => {
  const [first, second] = [await leaving(), await leaving()];
  const { started, start } = runs();
  await look((userId) =>
    userId === first ? Promise.reject(new UnavailableError('Temporal is away')) : start(userId),
  );
  expect(started).toEqual([second]);
  await later(31);
  await look(start);
  expect(started.toSorted()).toEqual([first, second, second].toSorted());
});
