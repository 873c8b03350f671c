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

/** Longer than any test: what is waited for so long is heard, or the test fails. */
const HOUR_MS = 3_600_000;

const TOLD = [
  'mails',
  'risc_events',
  'account_deletions',
  'payments',
  'clones',
  'royalty_splits',
  'payment_sessions',
] as const satisfies readonly AnnouncedTable[];

const never = new AbortController().signal;

let database: TestDatabase;
/** Listens, and is listened to alone. */
let listening: Database;
beforeAll(async () => {
  database = await testDatabase();
  listening = new Database(database.url, { maxConnections: 2 });
  await Promise.all(TOLD.map((table) => began(listening.changesOf(table))));
});
afterAll(async () => {
  await listening?.close();
  await database?.close();
});

const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

/** Who begins to listen is told to look. */
const began = (changes: TableChanges) => changes.after(0, HOUR_MS, never);

/** What is told in turn is heard in turn. */
async function heardAll(): Promise<void> {
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

test('a row that somebody waits for is told of in every table that has such rows', async () => {
  const rows = Object.entries(ROWS);
  const counts = new Map(TOLD.map((table) => [table, listening.changesOf(table).count]));
  for (const [table, row] of rows) await owner(insertSql(table, row('ada', 1)));
  for (const [table, count] of counts)
    await listening.changesOf(table).after(count, HOUR_MS, never);
});

test('a process that hears nothing any more is held open by nothing', async () => {
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

describe('of a payment session', () => {
  const changes = () => listening.changesOf('payment_sessions');

  test('it is told what becomes of it, and not what is debited', async () => {
    await heardAll();
    const { count } = changes();
    await owner(`UPDATE payment_sessions SET delivered = 1, settlement_due_at = now()`);
    await heardAll();
    expect(changes().count).toBe(count);
    await owner(`UPDATE payment_sessions SET state = 'failed', failure = 'reverted'`);
    await changes().after(count, HOUR_MS, never);
  });
});

test('nobody is told of a row that was taken back', async () => {
  await heardAll();
  const { count } = listening.changesOf('payments');
  await owner(`BEGIN; ${insertSql('payments', ROWS.payments?.('ada', 9) ?? {})}; ROLLBACK`);
  await heardAll();
  expect(listening.changesOf('payments').count).toBe(count);
});

test('a connection that breaks is replaced, and whoever waits looks for what was missed', async () => {
  const { count } = listening.changesOf('payments');
  await killListeners();
  await listening.changesOf('payments').after(count, HOUR_MS, never);
  await heardAll();
});

describe('who waits for a row', () => {
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

  test('sees what nobody told of, because the listener was killed, or the notice lost', async () => {
    const id = await written(2);
    const waiting = watch(listening.changesOf('payments')).until(id, isOver, never);
    await killListeners();
    // As if it came while nobody listened.
    await owner(
      `ALTER TABLE payments DISABLE TRIGGER payments_changes_told;
       UPDATE payments SET ${END} WHERE id = '${id}';
       ALTER TABLE payments ENABLE TRIGGER payments_changes_told`,
    );
    expect(await waiting).toBe('failed');
  });

  test('sees it with a look that began after it was told, whoever looked before', async () => {
    const id = await written(3);
    const changes = listening.changesOf('payments');
    await heardAll();
    const looks: ((states: ReadonlyMap<string, string>) => void)[] = [];
    const slow = new RowWatch<string>(changes, () => new Promise((resolve) => looks.push(resolve)));
    const first = slow.until(id, isOver, never);
    const { count } = changes;
    await owner(`UPDATE payments SET ${END} WHERE id = '${id}'`);
    await changes.after(count, HOUR_MS, never);
    const second = slow.until(id, isOver, never);
    looks[1]?.(new Map([[id, 'failed']]));
    expect(await second).toBe('failed');
    looks[0]?.(new Map([[id, 'queued']]));
    await expect.poll(() => looks.length).toBe(3);
    looks[2]?.(new Map([[id, 'failed']]));
    expect(await first).toBe('failed');
  });

  test('ends when its signal aborts, with what was seen last', async () => {
    const id = await written(4);
    const signal = AbortSignal.abort();
    expect(await watch(listening.changesOf('payments')).until(id, isOver, signal)).toBe('queued');
  });
});

test('whether it still hears is asked after a pause by chance', async () => {
  const chance = vi.spyOn(Math, 'random');
  const another = new Database(database.url, { maxConnections: 1 });
  await began(another.changesOf('mails'));
  expect(chance).toHaveBeenCalledOnce();
  chance.mockRestore();
  await another.close();
});

test('a database that is closed is not listened to any more', async () => {
  const another = new Database(database.url, { maxConnections: 1 });
  await began(another.changesOf('mails'));
  await another.close();
  const left = await database.db.asPlatform().query(
    `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE '% row changes'`,
  );
  expect(left.length).toBeLessThanOrEqual(1);
});
