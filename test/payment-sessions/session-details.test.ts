import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { detailsOf } from '../../src/payment-sessions/session-details.js';
import { queryRows } from '../database/catalog.js';
import { insertSql, ROWS } from '../database/rows.js';
import { testDatabase } from '../support/postgres.js';

const MOST_OF_EACH = 1_000;

test('what is pending of a session is its latest, however much others have', async () => {
  const database = await testDatabase();
  try {
    const owner = (sql: string) => queryRows(database.ownerUrl, sql);
    const sessions = [randomUUID(), randomUUID()].map((id) => ({ id }));
    for (const { id } of sessions) {
      const { user_id, ...row } = ROWS.payment_sessions?.(id, 1) ?? {};
      const opened = { id, deposit: 2_000_000, delivered: 1_002, settled: 1, state: 'active' };
      const at = '2026-01-01T00:00:00Z';
      await owner(
        insertSql('payment_sessions', { ...row, ...opened, opened_at: at, hold_expires_at: at }),
      );
      await owner(
        `INSERT INTO payment_vouchers (id, session_id, sequence, amount, cumulative, plugin, action)
         SELECT '${id}' || n, '${id}', n, 1, n, 'chain', 'transfers'
           FROM generate_series(1, 1002) n ORDER BY random()`,
      );
    }
    const { pending } = await detailsOf(database.db.asPlatform(), sessions);
    for (const { id } of sessions) {
      const sequences = pending.filter(({ sessionId }) => sessionId === id);
      expect(sequences.map(({ sequence }) => Number(sequence))).toEqual(
        Array.from({ length: MOST_OF_EACH }, (_, index) => index + 3),
      );
    }
  } finally {
    await database.close();
  }
});
