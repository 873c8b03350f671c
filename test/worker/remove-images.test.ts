import { afterAll, beforeAll, expect, test } from 'vitest';
import { pino } from 'pino';
import { removeImages } from '../../worker/remove-images.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertSql, ROWS } from '../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

test('keeps the current, previous and default images of agents, and removes all others', async () => {
  const wanted: string[] = [];
  const images = {
    removeUnused(names: ReadonlySet<string>) {
      wanted.push(...names);
      return Promise.resolve(['gone']);
    },
  };
  const agent = (id: string, more: Record<string, string>) => {
    const { deleted_at: _, ...row } = ROWS.agents!('alice', 1);
    const present = { ...row, desired: 'running', status: 'active' };
    return insertSql('agents', { ...present, id, name: id, subdomain: id, ...more });
  };
  const previous = JSON.stringify({ operationId: 'o', image: 'before:1' });
  await queryRows(
    database.ownerUrl,
    [
      insertSql('users', ROWS.users!('alice', 1)),
      agent('a', { image: 'now:1', previous_release: previous }),
      agent('b', { image: 'removed:1', previous_release: previous.replace('before', 'old') }),
      `UPDATE agents SET desired = 'deleted', deleted_at = now() WHERE id = 'b'`,
    ].join(';'),
  );
  const removal = { database: database.db, docker: { images }, usual: 'usual:1' };
  expect(await removeImages({ ...removal, log: pino({ enabled: false }) })).toEqual(['gone']);
  expect(wanted.sort()).toEqual(['before:1', 'now:1', 'usual:1']);
});
