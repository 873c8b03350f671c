import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { builtProgram } from '../../../dev/root.js';
import { Database } from '../../../src/platform/database/database.js';
import type { TableChanges, AnnouncedTable } from '../../../src/platform/database/row-changes.js';
import { RowWatch } from '../../../src/platform/database/row-watch.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { runProgram } from '../../support/run-program.js';
import { queryRows } from './catalog.js';
import { insertSql, ROWS } from './rows.js';

/** Longer than any test: a notice arrives before, or the test fails. */
const HOUR_MS = 3_600_000;

const CHANGED = [
  'mails',
  'risc_events',
  'account_deletions',
  'payments',
  'clones',
  'royalty_splits',
  'payment_sessions',
  'processor_events',
  'agent_verifications',
  'swarms',
] as const satisfies readonly AnnouncedTable[];

const never = new AbortController().signal;

let database: TestDatabase;
/** The database connection that listens; rows are written through others. */
let listening: Database;
beforeAll(async () => {
  database = await testDatabase();
  listening = new Database(database.url, { maxConnections: 2 });
  await Promise.all(CHANGED.map((table) => began(listening.changesOf(table))));
});
afterAll(async () => {
  await listening?.close();
  await database?.close();
});

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

/** Resolves when listening has begun, which counts as a change. */
const began = (changes: TableChanges) => changes.after(0, HOUR_MS, never);

/** Waits until all earlier notices have arrived; notices arrive in order. */
async function receivedAll(): Promise<void> {
  const changes = listening.changesOf('mails');
  const { count } = changes;
  await owner(`NOTIFY rows, 'mails'`);
  await changes.after(count, HOUR_MS, never);
}

const killListeners = () =>
  database.db.asPlatform().query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE '% row changes'`,
  );

test('every watched table notifies of a new row', async () => {
  const rows = Object.entries(ROWS);
  const counts = new Map(CHANGED.map((table) => [table, listening.changesOf(table).count]));
  for (const [table, row] of rows) await owner(insertSql(table, row('ada', 1)));
  for (const [table, count] of counts)
    await listening.changesOf(table).after(count, HOUR_MS, never);
});

test('a closed database leaves no timer that keeps the process alive', async () => {
  const program = `
    import { Database } from ${JSON.stringify(pathToFileURL(builtProgram('src', 'platform', 'database', 'database.js')))};
    const database = new Database(process.argv[1], { maxConnections: 1 });
    await database.changesOf('mails').after(0, ${HOUR_MS}, new AbortController().signal);
    await database.close();
    console.log(process.getActiveResourcesInfo().filter((name) => name === 'Timeout'));
  `;
  const output = await runProgram(['--input-type=module', '--eval', program, database.url]);
  expect(output).toBe('[]\n');
});

describe('notices of a payment session', () => {
  const changes = () => listening.changesOf('payment_sessions');

  test('a payment session notifies of its state and not of its debits', async () => {
    await receivedAll();
    const { count } = changes();
    await owner(`UPDATE payment_sessions SET delivered = 1, settlement_due_at = now()`);
    await receivedAll();
    expect(changes().count).toBe(count);
    await owner(`UPDATE payment_sessions SET state = 'failed', failure = 'reverted'`);
    await changes().after(count, HOUR_MS, never);
  });
});

test('a row that was rolled back notifies no listener', async () => {
  await receivedAll();
  const { count } = listening.changesOf('payments');
  await owner(`BEGIN; ${insertSql('payments', ROWS.payments?.('ada', 9) ?? {})}; ROLLBACK`);
  await receivedAll();
  expect(listening.changesOf('payments').count).toBe(count);
});

test('a broken connection is replaced, and waiting readers check for missed changes', async () => {
  const { count } = listening.changesOf('payments');
  await killListeners();
  await listening.changesOf('payments').after(count, HOUR_MS, never);
  await receivedAll();
});

describe('a reader that waits for a row', () => {
  const watch = (changes: TableChanges) =>
    new RowWatch(changes, async (ids) => {
      const found = await owner(
        `SELECT id, state FROM payments WHERE id IN (${ids.map((id) => `'${id}'`).join()})`,
      );
      return new Map(found.map(({ id, state }) => [String(id), String(state)]));
    });
  const written = async (n: number): Promise<string> => {
    const row = ROWS.payments?.('ada', n) ?? {};
    await owner(insertSql('payments', row));
    return String(row.id);
  };
  const isOver = (state: string | undefined) => state === 'failed';
  const END = `state = 'failed', failure = 'reverted', settled_at = now()`;

  test('a waiting reader sees a change without a notice, after the listener was killed or the notice lost', async () => {
    const id = await written(2);
    const waiting = watch(listening.changesOf('payments')).until(id, isOver, never);
    await killListeners();
    // Simulates a change while no connection listens.
    await owner(
      `ALTER TABLE payments DISABLE TRIGGER payments_changes_told;
       UPDATE payments SET ${END} WHERE id = '${id}';
       ALTER TABLE payments ENABLE TRIGGER payments_changes_told`,
    );
    expect(await waiting).toBe('failed');
  });

  test('a waiting reader accepts only a read that began after the notice', async () => {
    const id = await written(3);
    const changes = listening.changesOf('payments');
    await receivedAll();
    const checks: ((states: ReadonlyMap<string, string>) => void)[] = [];
    const slow = new RowWatch<string>(
      changes,
      () => new Promise((resolve) => checks.push(resolve)),
    );
    const first = slow.until(id, isOver, never);
    const { count } = changes;
    await owner(`UPDATE payments SET ${END} WHERE id = '${id}'`);
    await changes.after(count, HOUR_MS, never);
    const second = slow.until(id, isOver, never);
    checks[1]?.(new Map([[id, 'failed']]));
    expect(await second).toBe('failed');
    checks[0]?.(new Map([[id, 'queued']]));
    await expect.poll(() => checks.length).toBe(3);
    checks[2]?.(new Map([[id, 'failed']]));
    expect(await first).toBe('failed');
  });

  test('a waiting reader returns the last state when its signal aborts', async () => {
    const id = await written(4);
    const signal = AbortSignal.abort();
    expect(await watch(listening.changesOf('payments')).until(id, isOver, signal)).toBe('queued');
  });
});

test('the listening connection is probed after a random pause', async () => {
  const chance = vi.spyOn(Math, 'random');
  const another = new Database(database.url, { maxConnections: 1 });
  await began(another.changesOf('mails'));
  expect(chance).toHaveBeenCalledOnce();
  chance.mockRestore();
  await another.close();
});

test('a closed database does not listen any more', async () => {
  const another = new Database(database.url, { maxConnections: 1 });
  await began(another.changesOf('mails'));
  await another.close();
  const left = await database.db.asPlatform().query(
    `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE '% row changes'`,
  );
  expect(left.length).toBeLessThanOrEqual(1);
});
