import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OpenCalls, openCallLines } from '../../../src/ai/usage/open-calls.js';
import type { UsageRecord } from '../../../src/ai/usage/usage-record.js';
import { usageOf } from './ledger.js';

let folder: string;
let file: string;
let calls: OpenCalls;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-open-'));
  file = path.join(folder, 'journal', 'a.open');
  calls = new OpenCalls(file);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const inFile = (): UsageRecord[] =>
  openCallLines(readFileSync(file))
    .filter((line) => line !== '')
    .map((line): UsageRecord => JSON.parse(line));

function begin(given: Partial<UsageRecord> = {}): string {
  const record = usageOf(given);
  calls.begin(record.callId, () => record);
  return record.callId;
}

test('writes the usage of a call to the file at once, and updates it during the call', () => {
  let outputTokens = 0;
  const record = usageOf();
  calls.begin(record.callId, () => ({ ...record, outputTokens }));
  expect(inFile()).toEqual([{ ...record, outputTokens: 0 }]);
  outputTokens = 12_345;
  calls.refresh();
  expect(inFile()).toEqual([{ ...record, outputTokens }]);
  // The new value is also shorter than the previous one.
  outputTokens = 1;
  calls.refresh();
  expect(inFile()).toEqual([{ ...record, outputTokens }]);
});

test('an ended call is removed from the file, and a new one reuses its slot', () => {
  const [first, second, third] = [begin(), begin(), begin()];
  calls.end(second);
  calls.end(randomUUID());
  expect(inFile().map(({ callId }) => callId)).toEqual([first, third]);
  const { size } = statSync(file);
  const fourth = begin();
  expect(inFile().map(({ callId }) => callId)).toEqual([first, fourth, third]);
  expect(statSync(file).size).toBe(size);
  for (const id of [first, third, fourth]) calls.end(id);
  expect(statSync(file).size).toBe(0);
  const fifth = begin();
  expect(inFile().map(({ callId }) => callId)).toEqual([fifth]);
});

test('an expected call is written at the next refresh, and its usage as soon as it begins', () => {
  const [record, short] = [usageOf(), usageOf()];
  calls.expect(record.callId, () => record);
  calls.expect(short.callId, () => short);
  expect(existsSync(file)).toBe(false);
  calls.end(short.callId);
  calls.refresh();
  expect(inFile()).toEqual([record]);
  const begun = { ...record, outputTokens: 77 };
  calls.begin(record.callId, () => begun);
  expect(inFile()).toEqual([begun]);
  calls.end(record.callId);
  expect(statSync(file).size).toBe(0);
});

test('the longest possible record fits in a slot', () => {
  const long = { userId: 'u'.repeat(255), agentId: 'a'.repeat(255), model: 'm'.repeat(100) };
  const id = begin({ ...long, endpoint: `/${'é'.repeat(254)}`, heldBy: randomUUID(), held: 1e15 });
  expect(inFile()).toMatchObject([{ callId: id, ...long }]);
});

test('a removed file is recreated at the next heartbeat', () => {
  const [first, second] = [begin(), begin()];
  rmSync(path.dirname(file), { recursive: true });
  calls.touch();
  expect(inFile().map(({ callId }) => callId)).toEqual([first, second]);
  calls.end(first);
  expect(inFile().map(({ callId }) => callId)).toEqual([second]);
});

test('the file stays for another process to take over, unless no call is open', () => {
  const id = begin();
  calls.close();
  expect(inFile().map(({ callId }) => callId)).toEqual([id]);
  calls = new OpenCalls(file);
  calls.end(begin());
  calls.close();
  expect(existsSync(file)).toBe(false);
});
