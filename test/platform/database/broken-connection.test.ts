import { expect, test } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { testDatabase } from '../../support/postgres.js';

test('a connection that breaks during a single statement fails only that statement', async () => {
  const database = await testDatabase();
  try {
    const platform = database.db.asPlatform();
    await expect(
      platform.query('SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(5)'),
    ).rejects.toThrow();
    expect(await platform.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  } finally {
    await database.close();
  }
});

test('a single statement that is refused leaves its connection usable and without its tenant', async () => {
  const database = await testDatabase();
  const db = new Database(database.url, { maxConnections: 1 });
  try {
    await expect(db.asPlatform().query('SELECT 1 / 0')).rejects.toThrow('division by zero');
    const text = `SELECT current_setting('app.platform', true) AS platform`;
    expect(await db.call({ text }, [])).toEqual([{ platform: '' }]);
    expect(await db.asUser('ada').query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  } finally {
    await db.close();
    await database.close();
  }
});
