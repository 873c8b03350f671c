// @module-tag attack
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeError } from '../../../src/lib/describe-error.js';
import { LOG_SERIALIZERS } from '../../../src/platform/process/log.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const SECRET = 'a-secret-that-was-bound';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

const failing: [string, () => Promise<unknown>][] = [
  [
    'a statement of its own',
    () => database.db.asPlatform().query('SELECT $secret::uuid', { secret: SECRET }),
  ],
  [
    'a statement of a transaction',
    () => database.db.asPlatform().transaction((db) => db.query('SELECT $s::int', { s: SECRET })),
  ],
  [
    'a row that is refused',
    () =>
      database.db.asUser('ada').transaction((db) =>
        db.ApiKey.create({
          id: '1',
          userId: 'bob',
          name: SECRET,
          keyPreview: SECRET,
          keyHash: SECRET,
          lookupHash: SECRET,
          lastUsed: null,
        }),
      ),
  ],
];

test.each(failing)('logs nothing of the bound values of %s', async (_what, work) => {
  const lines: string[] = [];
  const log = pino({ serializers: LOG_SERIALIZERS }, { write: (line) => lines.push(line) });
  const error: unknown = await work().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  log.error({ err: error }, 'failed');
  log.error({ error: describeError(error) }, 'failed');
  expect(lines.join('')).not.toContain(SECRET);
  expect(lines.join('')).not.toMatch(/INSERT|SELECT/);
  expect(lines[0]).toContain('"code":"');
});
