import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { detailsOf } from '../../../src/money/sessions/session-details.js';
import { settledBy } from '../../../src/money/sessions/session-settlements.js';
import { queryRows } from '../../platform/database/catalog.js';
import { insertSql, ROWS } from '../../platform/database/rows.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const MOST_OF_EACH = 1_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

const owner = (sql: string) => queryRows(database.ownerUrl, sql);
const shown = (sessions: readonly { readonly id: string }[]) =>
  detailsOf(database.db.asPlatform(), sessions);

async function activeSession(): Promise<{ readonly id: string }> {
  const id = randomUUID();
  const { user_id, ...row } = ROWS.payment_sessions?.(id, 1) ?? {};
  const opened = { id, deposit: 2_000_000, delivered: 1_002, settled: 1, state: 'active' };
  const at = '2026-01-01T00:00:00Z';
  await owner(
    insertSql('payment_sessions', { ...row, ...opened, opened_at: at, hold_expires_at: at }),
  );
  return { id };
}

test('returns the latest pending vouchers of each session, however many other sessions have', async () => {
  const sessions = [await activeSession(), await activeSession()];
  for (const { id } of sessions) {
    await owner(
      `INSERT INTO payment_vouchers (id, session_id, sequence, amount, cumulative, plugin, action)
       SELECT '${id}' || n, '${id}', n, 1, n, 'chain', 'transfers'
         FROM generate_series(1, 1002) n ORDER BY random()`,
    );
  }
  const { pending } = await shown(sessions);
  for (const { id } of sessions) {
    const sequences = pending.filter(({ sessionId }) => sessionId === id);
    expect(sequences.map(({ sequence }) => Number(sequence))).toEqual(
      Array.from({ length: MOST_OF_EACH }, (_, index) => index + 3),
    );
  }
});

test('counts only confirmed settlements, and lists them oldest first', async () => {
  const { id } = await activeSession();
  const ended = (cumulative: number, state: 'confirmed' | 'failed') => {
    const at = `2026-01-01T0${cumulative}:00:00Z`;
    return owner(
      `INSERT INTO payment_settlements
         (session_id, cumulative, kind, state, payment, transaction, ended_at, retry_at)
       VALUES ('${id}', ${cumulative}, 'settle', '${state}', '${id}:${cumulative}', '0x${cumulative}',
               '${at}', ${state === 'failed' ? `'${at}'` : 'NULL'})`,
    );
  };
  const settledAt = async () => (await shown([{ id }])).lastSettledAt.get(id)?.toISOString();
  await ended(1, 'failed');
  expect(await settledAt()).toBeUndefined();
  await ended(3, 'confirmed');
  await ended(2, 'confirmed');
  await ended(4, 'failed');
  expect(await settledAt()).toBe('2026-01-01T03:00:00.000Z');
  expect(await settledBy(database.db.asPlatform(), id)).toEqual(['0x2', '0x3']);
});
