import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { UnavailableError } from '../../../src/lib/errors.js';
import { Meter } from '../../../src/ai/usage/meter.js';
import type { UsageRecord } from '../../../src/ai/usage/usage-record.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { until } from '../../support/until.js';
import { asOwner, balanceOf, rowsOf, unbalanced, usageOf } from './ledger.js';

/** Milliseconds between two heartbeats; after four missed ones other processes take over the work. */
const SIGN_OF_LIFE_MS = 50;

let database: TestDatabase;
let db: Database;
let folder: string;
let logged: string[];
let cleanups: (() => Promise<unknown>)[];

beforeAll(async () => {
  database = await testDatabase();
  db = database.db;
});
afterAll(() => database?.close());
beforeEach(async () => {
  const tables = 'usage_logs, usage_daily, usage_pending, quota_reservations, token_quotas';
  await asOwner(database.ownerUrl, `TRUNCATE ${tables}`);
  folder = await mkdtemp(path.join(tmpdir(), 'aps-journal-'));
  logged = [];
  cleanups = [() => rm(folder, { recursive: true, force: true })];
});
afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

interface Made {
  readonly at?: Database;
  readonly in?: string;
}

/** Creates a meter that is closed at the end of the test, unless the test closes it. */
function meterOf(made: Made = {}) {
  const { log, lines } = keptLog();
  logged = lines;
  const meter = new Meter({
    database: made.at ?? db,
    folder: made.in ?? folder,
    log,
    signOfLifeMs: SIGN_OF_LIFE_MS,
  });
  let closing: Promise<void> | undefined;
  const close = (timeoutMs?: number) => (closing ??= meter.close(timeoutMs));
  cleanups.push(() => close(0));
  return { meter, close };
}

const messages = () =>
  logged.map((line) => {
    const { level, msg }: { level: number; msg: string } = JSON.parse(line);
    return `${level >= 50 ? 'error' : 'info'}: ${msg}`;
  });

const segments = (): string[] => readdirSync(folder).filter((name) => /\.\d+\.jsonl$/.test(name));

const openFile = () =>
  path.join(folder, readdirSync(folder).find((name) => name.endsWith('.open')) ?? '');

/** Ids of the calls in the journal. */
const journal = (): string[] =>
  segments().flatMap((name) =>
    readFileSync(path.join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as UsageRecord).callId),
  );

const refusedFile = () => existsSync(path.join(folder, 'refused.jsonl'));

const refused = () => readFileSync(path.join(folder, 'refused.jsonl'), 'utf8').split('\n');

const rows = async () =>
  (await rowsOf<{ id: string }>(db, 'SELECT call_id AS id FROM usage_logs u ORDER BY u.id')).map(
    ({ id }) => id,
  );

const ids = (records: readonly UsageRecord[]) => records.map(({ callId }) => callId);

const many = (count: number, given: Partial<UsageRecord> = {}) =>
  Array.from({ length: count }, () => usageOf(given));

/** Writes a journal of a dead process. */
const leave = (text: string) => writeFileSync(path.join(folder, `${randomUUID()}.0.jsonl`), text);

/** Starts processes, which take over the journals of dead ones, and waits until they have. */
async function takeOver(takers = 1): Promise<void> {
  const left = segments();
  for (let n = 0; n < takers; n++) meterOf();
  await expect.poll(() => left.filter((name) => segments().includes(name))).toEqual([]);
}

const linesOf = (records: readonly UsageRecord[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

describe('usage record', () => {
  test('a record is written to the journal first, then to the database, and is then removed from the journal', async () => {
    const { meter } = meterOf();
    const record = usageOf();
    meter.record(record);
    expect(journal()).toEqual([record.callId]);
    await expect.poll(rows).toEqual([record.callId]);
    await meter.flushed();
    expect(journal()).toEqual([]);
  });

  test('a record is stored with the values given', async () => {
    const { meter } = meterOf();
    const record = usageOf({
      agentId: 'agent-1',
      at: '2026-03-01T23:59:59.999Z',
      cacheReadTokens: 1,
      cacheWriteTokens: 2,
    });
    meter.record(record);
    await meter.flushed();
    const [row] = await rowsOf(db, 'SELECT * FROM usage_logs');
    expect(row).toMatchObject({
      call_id: record.callId,
      user_id: 'ada',
      agent_id: 'agent-1',
      provider: 'openai',
      model: 'openai/gpt-6-luna',
      input_tokens: 3,
      output_tokens: 2,
      cache_read_tokens: 1,
      cache_write_tokens: 2,
      cost_usd: '0.000123',
      endpoint: '/v1/chat/completions',
      created_at: new Date('2026-03-01T23:59:59.999Z'),
    });
  });

  test('a record is logged', () => {
    const { meter } = meterOf();
    meter.record(usageOf({ agentId: 'agent-1' }));
    meter.record(usageOf());
    expect(messages()).toEqual([
      'info: [UsageLogger] Logging: agent-1 | openai/gpt-6-luna | 3+2 tokens | $0.000123',
      'info: [UsageLogger] Logging: api | openai/gpt-6-luna | 3+2 tokens | $0.000123',
    ]);
  });

  test('recording a call settles its reservation, and releasing a failed call returns its tokens', async () => {
    const { meter } = meterOf();
    const [answered, failed] = [usageOf(), usageOf({ userId: 'bob' })];
    for (const { callId, userId } of [answered, failed]) {
      await meter.reserve({ callId, userId, plan: 'solo', tokens: 100 });
    }
    expect(await balanceOf(db, 'ada')).toEqual({ used: 0, held: 100 });
    expect(await balanceOf(db, 'bob')).toEqual({ used: 0, held: 100 });
    meter.record(answered);
    meter.release(failed.callId);
    await meter.flushed();
    expect(await balanceOf(db, 'ada')).toEqual({ used: 5, held: 0 });
    expect(await balanceOf(db, 'bob')).toEqual({ used: 0, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });

  test('a record in the journal names its reservation, so that another process can settle it', async () => {
    const { meter } = meterOf();
    const record = usageOf();
    const { callId, userId } = record;
    await meter.reserve({ callId, userId, plan: 'solo', tokens: 100 });
    meter.record(record);
    const [line] = segments().flatMap((name) => {
      const text = readFileSync(path.join(folder, name), 'utf8');
      return text === '' ? [] : [JSON.parse(text) as UsageRecord];
    });
    expect(line).toEqual({ ...record, heldBy: callId, held: 100 });
  });
});

describe('call in flight', () => {
  /** Ends the meter as if its process had been killed, without a last write. */
  const killed = (meter: Meter) => meter.close(0);

  const used = async () =>
    rowsOf(
      db,
      'SELECT call_id AS id, input_tokens AS "in", output_tokens AS "out" FROM usage_logs',
    );

  test('a call cut off by a kill counts with the tokens used, and the rest is returned', async () => {
    const { meter } = meterOf();
    let outputTokens = 0;
    const record = usageOf();
    const { callId, userId } = record;
    await meter.reserve({ callId, userId, plan: 'solo', tokens: 100 });
    meter.begin(callId, () => ({ ...record, outputTokens }));
    outputTokens = 40;
    await expect.poll(() => readFileSync(openFile(), 'utf8')).toContain('"outputTokens":40');
    await killed(meter);
    meterOf();
    await expect.poll(used).toEqual([{ id: callId, in: 3, out: 40 }]);
    expect(await balanceOf(db, userId)).toEqual({ used: 43, held: 0 });
    await expect.poll(() => readdirSync(folder)).toEqual([]);
  });

  test('a request still in flight at a kill counts as estimated, unless it has ended', async () => {
    const { meter } = meterOf();
    const [asked, ended] = [usageOf(), usageOf({ userId: 'eve' })];
    for (const { callId, userId } of [asked, ended]) {
      await meter.reserve({ callId, userId, plan: 'solo', tokens: 100 });
    }
    for (const record of [asked, ended]) meter.expect(record.callId, () => record);
    meter.release(ended.callId);
    await expect.poll(() => readdirSync(folder)).toContainEqual(expect.stringMatching('open'));
    await killed(meter);
    meterOf();
    await expect.poll(used).toEqual([{ id: asked.callId, in: 3, out: 2 }]);
    expect(await balanceOf(db, asked.userId)).toEqual({ used: 5, held: 0 });
    await expect.poll(() => readdirSync(folder)).toEqual([]);
  });

  test('a call left in the open file after it was recorded counts once, as recorded', async () => {
    const { meter } = meterOf();
    const [left, ended] = [usageOf(), usageOf()];
    for (const record of [left, ended]) {
      meter.begin(record.callId, () => ({ ...record, outputTokens: 1_000 }));
    }
    // Simulates a kill after the record was written and before the call was removed from the open file.
    const file = openFile();
    const begun = readFileSync(file);
    for (const record of [left, ended]) meter.record(record);
    expect(readFileSync(file, 'utf8')).toBe('');
    await killed(meter);
    writeFileSync(file, begun);
    meterOf();
    await expect.poll(() => readdirSync(folder)).toEqual([]);
    expect(await used()).toEqual(
      expect.arrayContaining([left, ended].map(({ callId }) => ({ id: callId, in: 3, out: 2 }))),
    );
    expect(await rows()).toHaveLength(2);
    expect(await unbalanced(db)).toEqual([]);
  });

  test('a call that cannot be written to the journal is still served', () => {
    const { meter } = meterOf();
    meter.begin(usageOf().callId, () => usageOf({ endpoint: 'x'.repeat(5_000) }));
    expect(messages()).toEqual([
      'error: [UsageLogger] Failed to log usage: a record exceeds the size of a slot',
    ]);
  });
});

test('a living process keeps its reservations', async () => {
  const { meter } = meterOf();
  const { callId, userId } = usageOf();
  await meter.reserve({ callId, userId, plan: 'solo', tokens: 100 });
  const soon = `UPDATE quota_reservations SET expires_at = now() + interval '1 s'`;
  await asOwner(database.ownerUrl, soon);
  const kept = () =>
    rowsOf(db, `SELECT expires_at > now() + interval '10 s' AS kept FROM quota_reservations`);
  await expect.poll(kept).toEqual([{ kept: true }]);
});

describe('reservations of killed processes', () => {
  test('another process returns the tokens held by a killed one, without a schedule', async () => {
    const { meter, close } = meterOf();
    const { callId, userId } = usageOf();
    await meter.reserve({ callId, userId, plan: 'solo', tokens: 100 });
    await close(0);
    await asOwner(
      database.ownerUrl,
      `UPDATE quota_reservations SET expires_at = now() - interval '1 s'`,
    );
    meterOf();
    await expect.poll(() => balanceOf(db, userId)).toEqual({ used: 0, held: 0 });
    await expect.poll(messages).toContain('info: quota of processes that ended was released');
  });
});

describe('reservation ahead for a frequent caller', () => {
  const held = async () => (await balanceOf(db, 'ada')).held;

  async function callOften(meter: Meter): Promise<void> {
    for (let n = 0; n < 20; n++) {
      const record = usageOf();
      const { callId, userId } = record;
      await meter.reserve({ callId, userId, plan: 'solo', tokens: 100 });
      meter.record(record);
    }
  }

  test('returns the reservation ahead when the user stops calling', async () => {
    const { meter } = meterOf();
    await callOften(meter);
    expect(await held()).toBeGreaterThan(0);
    await expect.poll(held, { interval: 250 }).toBe(0);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 100, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });

  test('returns the reservation ahead when the process ends', async () => {
    const { meter, close } = meterOf();
    await callOften(meter);
    await close();
    expect(await balanceOf(db, 'ada')).toEqual({ used: 100, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });
});

describe('closing the meter', () => {
  test('close writes all records and leaves no journal', async () => {
    const { meter, close } = meterOf();
    const records = many(2_345);
    for (const record of records) meter.record(record);
    await close();
    expect(await rows()).toEqual(ids(records));
    expect(segments()).toEqual([]);
  });

  test('close loses no call that is recorded at the same time', async () => {
    const { meter, close } = meterOf();
    const records = many(50);
    const closing = close();
    for (const record of records) {
      meter.record(record);
      await new Promise(setImmediate);
    }
    await closing;
    const inTheDatabase = await rows();
    const left = new Set(segments().length > 0 ? journal() : []);
    const failed = messages().filter((line) => line.startsWith('error')).length;
    const kept = records.filter(({ callId }) => inTheDatabase.includes(callId) || left.has(callId));
    // A record that arrives after the journal is closed is refused with an error in the log.
    expect(kept.length + failed).toBe(50);
  });
});

describe('while the database is unavailable', () => {
  let proxy: TcpProxy;
  let far: Database;

  beforeEach(async () => {
    const url = new URL(database.url);
    proxy = await startTcpProxy(`tcp://${url.host}`);
    const way = new URL(proxy.host);
    url.host = way.host;
    far = new Database(url.href, { maxConnections: 3 });
    cleanups.push(
      () => proxy.close(),
      () => far.close(),
    );
  });

  test('calls continue, no record is lost, and all are written when the database returns', async () => {
    const { meter } = meterOf({ at: far });
    const before = many(10);
    for (const record of before) meter.record(record);
    await meter.flushed();
    proxy.cut();

    const during = many(700);
    for (const [n, record] of during.entries()) {
      const { callId, userId } = record;
      await meter.reserve({ callId, userId, plan: 'network', tokens: 10 });
      meter.record(record);
      // Some records are already being written when the next ones arrive.
      if (n % 100 === 0) await expect.poll(() => logged.length).toBeGreaterThan(n / 100);
    }
    await expect.poll(messages).toContainEqual(expect.stringMatching(FAILED));
    expect(new Set(journal())).toEqual(new Set(ids(during)));

    proxy.mend();
    await meter.flushed();
    expect(new Set(await rows())).toEqual(new Set(ids([...before, ...during])));
    expect(journal()).toEqual([]);
    expect(await unbalanced(db)).toEqual([]);
  });

  test('rejects new calls when too many records are waiting', async () => {
    const { meter, close } = meterOf({ at: far });
    proxy.cut();
    meter.record(usageOf());
    await expect.poll(messages).toContainEqual(expect.stringMatching(FAILED));
    const call = { userId: 'ada', plan: 'network', tokens: 1 } as const;
    await meter.reserve({ callId: randomUUID(), ...call });
    for (const record of many(100_000)) meter.record(record);
    const begun = meter.reserve({ callId: randomUUID(), ...call });
    await expect(begun).rejects.toThrow(UnavailableError);
    await expect(begun).rejects.toMatchObject({ status: 503 });
    await close(0);
    expect(journal()).toHaveLength(100_001);
  });

  test('closing leaves the journal to the next process', async () => {
    const { meter, close } = meterOf({ at: far });
    proxy.cut();
    const records = many(20);
    for (const record of records) meter.record(record);
    await close(100);
    expect(await rows()).toEqual([]);

    await takeOver();
    expect(new Set(await rows())).toEqual(new Set(ids(records)));
  });
});

const FAILED = /^error: \[UsageLogger\] Failed to log usage: ./;

describe('unwritable journal', () => {
  test('an unwritable journal folder prevents the start of a process', () => {
    const file = path.join(folder, 'file');
    writeFileSync(file, '');
    expect(() => meterOf({ in: path.join(file, 'journal') })).toThrow('ENOTDIR');
  });

  // /dev/full, a device that is always full, exists only on Linux.
  test.skipIf(process.platform !== 'linux')('a full disk does not stop calls', async () => {
    const { meter } = meterOf();
    const [first, later] = [usageOf(), many(2)];
    meter.record(first);
    const [name = ''] = segments();
    await meter.flushed();
    symlinkSync('/dev/full', path.join(folder, name.replace('0.jsonl', '1.jsonl')));
    for (const record of later) meter.record(record);
    const failure =
      'error: [UsageLogger] Failed to log usage: ENOSPC: no space left on device, write';
    expect(messages().filter((line) => line === failure)).toHaveLength(2);
    await meter.flushed();
    expect(await rows()).toEqual(ids([first, ...later]));
    expect(segments()).toEqual([]);
  });

  test.skipIf(process.platform !== 'linux')(
    'a call that has ended is not refreshed while the disk is full',
    async () => {
      const { meter } = meterOf();
      const [first, over, other] = [usageOf(), usageOf(), usageOf()];
      meter.record(first);
      const [name = ''] = segments();
      await meter.flushed();
      symlinkSync('/dev/full', path.join(folder, name.replace('0.jsonl', '1.jsonl')));
      const asked = { over: 0, other: 0 };
      meter.begin(over.callId, () => (asked.over++, over));
      meter.begin(other.callId, () => (asked.other++, other));
      meter.record(over);
      const before = { ...asked };
      await until(() => asked.other >= before.other + 2);
      expect(asked.over).toBe(before.over);
      meter.record(other);
      await meter.flushed();
      expect(await rows()).toEqual(ids([first, over, other]));
    },
  );

  test('the journal is recreated after its folder was removed', async () => {
    const { meter } = meterOf();
    rmSync(folder, { recursive: true });
    const record = usageOf();
    meter.record(record);
    expect(journal()).toEqual([record.callId]);
    await meter.flushed();
    expect(await rows()).toEqual([record.callId]);
  });
});

describe('journal of a killed process', () => {
  test("takes over a dead process's journal, except for a truncated last line", async () => {
    const records = many(1_203);
    const text = linesOf(records);
    leave(text.slice(0, -40));
    await takeOver();
    expect(await rows()).toEqual(ids(records.slice(0, -1)));
    expect(await unbalanced(db)).toEqual([]);
  });

  test('counts a journal record with additional fields of a later release', async () => {
    const record = usageOf();
    leave(linesOf([{ ...record, region: 'eu' } as UsageRecord]));
    await takeOver();
    expect(await rows()).toEqual([record.callId]);
    expect(refusedFile()).toBe(false);
  });

  test('counts a journal once if several processes take it over at the same time', async () => {
    const records = many(1_500);
    await db.call({ text: 'SELECT hold_tokens(60, $1)' }, [
      JSON.stringify(
        records.map(({ callId, userId }) => ({
          callId,
          userId,
          tokens: 100,
          extra: 0,
          limit: 1e9,
        })),
      ),
    ]);
    leave(linesOf(records));
    // A part of the journal was written to the database before.
    await db.call({ text: `SELECT settle_usage($1, '{}')` }, [
      JSON.stringify(records.slice(0, 700)),
    ]);
    await takeOver(3);
    expect(new Set(await rows())).toEqual(new Set(ids(records)));
    expect(await balanceOf(db, 'ada')).toEqual({ used: 1_500 * 5, held: 0 });
    expect(await unbalanced(db)).toEqual([]);
  });

  test('does not touch the journal of a living process', async () => {
    const nowhere = new Database('postgres://127.0.0.1:1/nowhere', { maxConnections: 1 });
    cleanups.push(() => nowhere.close());
    const living = meterOf({ at: nowhere });
    living.meter.record(usageOf());
    const before = segments();
    leave(linesOf([usageOf()]));
    const gone = segments().filter((name) => !before.includes(name));
    meterOf();
    await expect.poll(() => segments().some((name) => gone.includes(name))).toBe(false);
    expect(segments()).toEqual(expect.arrayContaining(before));
  });

  test('moves an unreadable line of a journal to another file and reads the next lines', async () => {
    const records = many(3);
    leave(`${linesOf(records.slice(0, 1))}{"callId":\n\n{}\n${linesOf(records.slice(1))}`);
    await takeOver();
    expect(await rows()).toEqual(ids(records));
    expect(refused()).toEqual(['{"callId":', '{}', '']);
  });
});

describe('record that the database refuses', () => {
  const poison = () => usageOf({ costUsd: '123456789.000000' });

  test('moves a refused record to another file and stores the others', async () => {
    const { meter } = meterOf();
    const records = many(40);
    const [bad, last] = [[poison(), usageOf({ model: '\ud83d' })], poison()];
    const mixed = [...records.slice(0, 13), ...bad, ...records.slice(13), last];
    for (const { callId, userId } of mixed) {
      await meter.reserve({ callId, userId, plan: 'solo', tokens: 10 });
    }
    for (const record of mixed) meter.record(record);
    await meter.flushed();
    expect(await rows()).toEqual(ids(records));
    const aside = refused().filter((line) => line !== '');
    expect(aside.map((line): unknown => JSON.parse(line))).toMatchObject([...bad, last]);
    expect(messages().filter((line) => FAILED.test(line))).toHaveLength(3);
    expect(await balanceOf(db, 'ada')).toEqual({ used: 200, held: 0 });
    expect(journal()).toEqual([]);
  });

  test('moves a refused record to another file also when it was taken over from another process', async () => {
    const [good, bad] = [usageOf(), poison()];
    leave(linesOf([bad, good]));
    await takeOver();
    expect(await rows()).toEqual([good.callId]);
    expect(refused()).toEqual([JSON.stringify(bad), '']);
  });
});
