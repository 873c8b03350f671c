import { expect, test } from 'vitest';
import { testDatabase } from '../support/postgres.js';

test('a connection that breaks under a single statement fails that statement alone', async () => {
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
