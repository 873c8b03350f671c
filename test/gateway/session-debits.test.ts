import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Database, FunctionCall } from '../../src/platform/database/database.js';
import { creditsPaymentSource } from '../../src/gateway/credits-purse.js';
import { HOLD_MS, type Debit } from '../../src/gateway/debits.js';
import { SessionDebits } from '../../src/gateway/session-debits.js';
import { sessionPaymentSource } from '../../src/gateway/session-purse.js';
import { checkLedger, LEDGER_CHECKS } from '../../src/money/ledger-check/check-ledger.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { booksOf, giveCredits, openSession, PRICE, setState, type TestSession } from './support.js';

const SETTINGS = {
  settleThreshold: 100_000_000n,
  settleIntervalMs: 3_600_000,
  maxAgeMs: 86_400_000,
  holdMs: 172_800_000,
};

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());
afterEach(() => void vi.useRealTimers());

const debit = (amount = PRICE): Debit => ({
  id: randomUUID(),
  plugin: 'echo',
  action: 'say',
  amount,
});

/** Opens a session with an earlier payment, the usual case. */
async function used(deposit: bigint): Promise<TestSession> {
  const session = await openSession(database.db, deposit + PRICE);
  const [{ purseOf }, first] = [counting(), debit()];
  await purseOf(session).hold(first);
  await purseOf(session).post(first);
  return session;
}

/** Makes purses that share statements, and records each statement's outcomes; a failed statement has none. */
function counting() {
  const said: string[][] = [];
  const counted: Pick<Database, 'call'> = {
    async call<Row extends object>(statement: FunctionCall, values: readonly unknown[]) {
      const saying: string[] = [];
      said.push(saying);
      const rows = await database.db.call<Row & { outcome: string }>(statement, values);
      saying.push(...rows.map(({ outcome }) => outcome));
      return rows;
    },
  };
  const debits = new SessionDebits(counted, SETTINGS);
  return {
    said,
    purseOf: ({ id }: TestSession) => sessionPaymentSource(database.db, id, SETTINGS, debits),
  };
}

const many = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

test('batches concurrent debits into the next statement, each with its own voucher', async () => {
  const [one, other] = [await used(40n * PRICE), await used(40n * PRICE)];
  const { purseOf, said } = counting();
  const wanted = many(40, (n) => ({ purse: purseOf(n % 2 ? other : one), debit: debit() }));
  const held = await Promise.all(wanted.map(({ debit, purse }) => purse.hold(debit)));
  expect(held).toEqual(many(40, () => undefined));
  const paid = await Promise.all(wanted.map(({ debit, purse }) => purse.post(debit)));
  const of = (outcome: string) => [[outcome], many(39, () => outcome)];
  expect(said).toEqual([...of('open'), ...of('posted')]);
  for (const [at, session] of [one, other].entries()) {
    const { vouchers, ...books } = await booksOf(database.db, session);
    expect(vouchers.map(({ sequence, cumulative }) => [sequence, cumulative])).toEqual(
      many(21, (n) => [n + 1, BigInt(n + 1) * PRICE]),
    );
    const theirs = paid.filter((_, n) => n % 2 === at).map(({ voucher }) => voucher);
    expect(vouchers.slice(1)).toMatchObject(theirs.map((each) => ({ id: each?.id })));
    expect(books).toMatchObject({ held: 0n, left: 20n * PRICE, spent: 21n * PRICE });
  }
});

test("expires holds by the database's clock, not by that of the process", async () => {
  const [often, first, userId] = [await used(PRICE), await openSession(database.db, PRICE), 'ada'];
  await giveCredits(database.db, userId, PRICE);
  const { purseOf, said } = counting();
  const purses = [
    purseOf(often),
    purseOf(first),
    creditsPaymentSource(database.db, userId, {}, { resaleDelayMs: 0 }),
  ];
  const held = purses.map((purse) => ({ purse, debit: debit() }));
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
  for (const { debit, purse } of held) expect(await purse.hold(debit)).toBeUndefined();
  // The first hold ran in a batch, the second by itself; the third is in credits.
  expect(said).toEqual([['open'], ['alone']]);
  const lasting = await database.db.asPlatform().query(
    `SELECT extract(epoch FROM expires_at - created_at)::float AS seconds FROM ledger_holds
      WHERE split_part(cause, ':', 2) = ANY ($ids)`,
    { ids: held.map(({ debit }) => debit.id) },
  );
  expect(lasting).toEqual(held.map(() => ({ seconds: HOLD_MS / 1_000 })));
});

test('uses indexes even on tables without statistics', async () => {
  const session = await used(40n * PRICE);
  const ids = many(20, () => randomUUID());
  const same = <T>(value: T) => ids.map(() => value);
  const scans = await database.db.asPlatform().transaction(async (db) => {
    for (const kind of ['hold', 'post']) {
      const until = new Date(Date.now() + 60_000);
      const outcomes = await db.query(
        `SELECT outcome FROM run_debits($kinds, $sessions, $ids, $wanted, $until, $words, $words, 1,
           interval '1 h')`,
        {
          kinds: same(kind),
          sessions: same(session.id),
          ids,
          words: same('a'),
          wanted: same(String(PRICE)),
          until: same(until),
        },
      );
      expect(outcomes).toEqual(same({ outcome: kind === 'hold' ? 'open' : 'posted' }));
    }
    return db.query<{ table: string; count: number }>(
      `SELECT relname AS table, pg_stat_get_xact_numscans(oid)::integer AS count FROM pg_class
        WHERE relname IN ('ledger_holds', 'ledger_transfers', 'payment_vouchers')`,
    );
  });
  expect(scans).toHaveLength(3);
  expect(scans.filter(({ count }) => count > 0)).toEqual([]);
});

test('refuses a debit above the deposit without refusing others of its batch', async () => {
  const session = await used(10n * PRICE);
  const { purseOf } = counting();
  const purse = purseOf(session);
  const amounts = [1n, 5n, 6n, 4n, 1n].map((times) => times * PRICE);
  // The first debit has a statement of its own.
  const held = await Promise.all(amounts.map((amount) => purse.hold(debit(amount))));
  expect(held.map((refusal) => refusal?.code)).toEqual([
    ...[undefined, undefined, 'SESSION_EXHAUSTED', undefined, 'SESSION_EXHAUSTED'],
  ]);
  expect(await booksOf(database.db, session)).toMatchObject({ held: 10n * PRICE });
});

test('handles repeated debits as one, even when they are concurrent', async () => {
  const session = await used(10n * PRICE);
  const { purseOf } = counting();
  const [purse, once] = [purseOf(session), debit()];
  expect(await Promise.all(many(4, () => purse.hold(once)))).toEqual(many(4, () => undefined));
  const paid = await Promise.all(many(4, () => purse.post(once)));
  expect(new Set(paid.map(({ voucher }) => voucher?.sequence))).toEqual(new Set([2]));
  expect(await booksOf(database.db, session)).toMatchObject({ held: 0n, spent: 2n * PRICE });
});

test('refuses new debits of a settling session within a batch, but charges its open holds', async () => {
  const [closing, open] = [await used(10n * PRICE), await used(10n * PRICE)];
  const { purseOf } = counting();
  const before = debit();
  await purseOf(closing).hold(before);
  await setState(database.ownerUrl, closing, 'settling');
  const [, refused, held, paid] = await Promise.all([
    purseOf(open).hold(debit()),
    purseOf(closing).hold(debit()),
    purseOf(open).hold(debit()),
    purseOf(closing).post(before),
  ]);
  expect([refused?.code, held]).toEqual(['SESSION_CLOSED', undefined]);
  expect(paid.voucher?.sequence).toBe(2);
});

test('does not delay other sessions when one session is locked', async () => {
  const [locked, free] = [await used(10n * PRICE), await used(10n * PRICE)];
  const { purseOf, said } = counting();
  const somebody = new pg.Client({ connectionString: database.ownerUrl });
  await somebody.connect();
  try {
    await somebody.query('BEGIN');
    await somebody.query('SELECT FROM payment_sessions WHERE id = $1 FOR UPDATE', [locked.id]);
    const waiting = Promise.allSettled([purseOf(locked).hold(debit())]);
    const wanted = many(5, () => debit());
    await Promise.all(wanted.map((each) => purseOf(free).hold(each)));
    expect(said).toEqual([['alone'], many(5, () => 'open')]);
    await somebody.query('COMMIT');
    await waiting;
  } finally {
    await somebody.end();
  }
});

test('changes nothing when a statement is interrupted, and succeeds on retry', async () => {
  const session = await used(10n * PRICE);
  const { purseOf } = counting();
  const [paying, holding] = [debit(), debit()];
  await purseOf(session).hold(paying);
  const before = await booksOf(database.db, session);
  // Holds are inserted after payments are written, so the statement blocks half done.
  const lock = new pg.Client({ connectionString: database.ownerUrl });
  await lock.connect();
  const blocked = `held_up_${randomUUID().replaceAll('-', '')}`;
  try {
    await lock.query('SELECT pg_advisory_lock(45)');
    await lock.query(
      `CREATE FUNCTION ${blocked}() RETURNS trigger LANGUAGE plpgsql AS
         $$BEGIN PERFORM pg_advisory_xact_lock(45); RETURN NULL; END$$;
       CREATE TRIGGER ${blocked} AFTER INSERT ON ledger_holds
         FOR EACH ROW EXECUTE FUNCTION ${blocked}()`,
    );
    const statement = 'SELECT * FROM run_debits($1, $2, $3, $4, $5, $6, $7, 1, interval $$1 h$$)';
    const both = [paying, holding];
    const breaking = database.db.call({ text: statement }, [
      ['post', 'hold'],
      both.map(() => session.id),
      both.map(({ id }) => id),
      both.map(({ amount }) => String(amount)),
      both.map(() => new Date(Date.now() + 60_000)),
      both.map(({ plugin }) => plugin),
      both.map(({ action }) => action),
    ]);
    let isOver = false;
    const ended = breaking.catch((error: unknown) => error).finally(() => (isOver = true));
    const kill = () =>
      database.db.asPlatform().query(
        `SELECT pg_terminate_backend(pid) FROM pg_locks
          WHERE locktype = 'advisory' AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
    await expect.poll(() => kill().then(() => isOver)).toBe(true);
    expect(await ended).toBeInstanceOf(Error);
    expect(await booksOf(database.db, session)).toEqual(before);
  } finally {
    await lock.query(`DROP FUNCTION IF EXISTS ${blocked} CASCADE`);
    await lock.end();
  }
  const [paid, held] = await Promise.all([
    purseOf(session).post(paying),
    purseOf(session).hold(holding),
  ]);
  expect([paid.voucher?.sequence, held]).toEqual([2, undefined]);
});

test('retries the debits of a refused statement one by one', async () => {
  const session = await used(10n * PRICE);
  const failing: Pick<Database, 'call'> = {
    call: (_, values) =>
      database.db.call({ text: 'SELECT 1 / 0 WHERE $1 IS NULL OR true' }, [values.length]),
  };
  const debits = new SessionDebits(failing, SETTINGS);
  const purse = sessionPaymentSource(database.db, session.id, SETTINGS, debits);
  const wanted = many(3, () => debit());
  await Promise.all(wanted.map((each) => purse.hold(each)));
  await Promise.all(wanted.map((each) => purse.post(each)));
  expect(await booksOf(database.db, session)).toMatchObject({ held: 0n, spent: 4n * PRICE });
});

test('keeps the ledger balanced after all session debits', async () => {
  expect((await checkLedger(database.db, LEDGER_CHECKS)).differences).toEqual([]);
});
