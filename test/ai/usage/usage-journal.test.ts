import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UsageJournal } from '../../../src/ai/usage/usage-journal.js';
import { usageOf } from './ledger.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-journal-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Number of lines of each file, sorted by file name. */
const files = () =>
  readdirSync(folder)
    .toSorted()
    .map((name) => readFileSync(path.join(folder, name), 'utf8').split('\n').length - 1);

test('removing a segment keeps the records appended after it was sealed', async () => {
  const journal = new UsageJournal(folder);
  journal.append(usageOf());
  journal.append(usageOf());
  const [sealed] = journal.sealAll();
  const later = [usageOf()];
  for (const record of later) journal.append(record);
  expect(files()).toEqual([2, 1]);
  if (sealed) await journal.remove(sealed);
  expect(files()).toEqual([1]);
  expect(journal.size).toBe(1);
  expect(journal.sealAll().map(({ records }) => records)).toEqual([later]);
  journal.close();
  expect(files()).toEqual([1]);
});

test('a segment has at most 500 records, which are read in order', () => {
  const journal = new UsageJournal(folder);
  const records = Array.from({ length: 6_001 }, () => usageOf());
  for (const record of records) journal.append(record);
  expect(files()).toEqual([...Array<number>(12).fill(500), 1]);
  expect(journal.sealAll().flatMap((segment) => segment.records)).toEqual(records);
  journal.close();
  const other = new UsageJournal(folder);
  expect(other.abandoned(-1).flatMap((segment) => segment.read().records)).toEqual(records);
});

test('a living process keeps all of its segments, even old ones', () => {
  const journal = new UsageJournal(folder);
  for (let n = 0; n < 3; n++) {
    journal.append(usageOf());
    journal.sealAll();
  }
  const gone = path.join(folder, `${randomUUID()}.000000000.jsonl`);
  writeFileSync(gone, '');
  let now = 0;
  const other = new UsageJournal(folder, () => now);
  expect(other.abandoned(60_000)).toEqual([]);
  now = 60_001;
  journal.touch();
  expect(other.abandoned(60_000)).toHaveLength(1);
  now = 120_002;
  expect(other.abandoned(60_000)).toHaveLength(4);
  journal.close();
});

test('a process does not take over the journal of a living one after a clock change', async () => {
  const journal = new UsageJournal(folder);
  journal.append(usageOf());
  journal.open.begin(randomUUID(), () => usageOf());
  let now = 0;
  const other = new UsageJournal(folder, () => now);
  await setClockBack();
  for (let check = 0; check < 4; check++) {
    expect(other.abandoned(60_000)).toEqual([]);
    now += 30_000;
    journal.touch();
  }
  journal.close();
});

/** Makes the journal files look one hour old. */
async function setClockBack(): Promise<void> {
  const hourAgo = new Date(Date.now() - 3_600_000);
  for (const name of readdirSync(folder)) await utimes(path.join(folder, name), hourAgo, hourAgo);
}

test('a line cut off by a full disk does not damage the next one', () => {
  const journal = new UsageJournal(folder);
  journal.append(usageOf());
  journal.close();
  const [name = ''] = readdirSync(folder);
  const whole = readFileSync(path.join(folder, name), 'utf8');
  const next = usageOf();
  writeFileSync(
    path.join(folder, name),
    `${whole}${whole.slice(0, 40)}\n${JSON.stringify(next)}\n`,
  );
  const [left] = new UsageJournal(folder).abandoned(-1);
  expect(left?.read().records).toHaveLength(2);
  expect(left?.read().unreadable).toEqual([whole.slice(0, 40)]);
});
