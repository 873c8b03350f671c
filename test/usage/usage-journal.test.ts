import { readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UsageJournal } from '../../src/usage/usage-journal.js';
import { usageOf } from './ledger.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-journal-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const sizes = () => readdirSync(folder).map((name) => statSync(path.join(folder, name)).size);

test('a page that is being cleared keeps its file until it is, whatever comes meanwhile', async () => {
  for (let round = 0; round < 20; round++) {
    const journal = new UsageJournal(folder);
    journal.append(usageOf());
    journal.turn();
    const clearing = journal.clear();
    journal.touch();
    await journal.close(true);
    await clearing;
  }
  expect(sizes()).toEqual(Array(40).fill(0));
});

test('what is appended while the page before is cleared stays', async () => {
  const journal = new UsageJournal(folder);
  journal.append(usageOf());
  journal.turn();
  const clearing = journal.clear();
  const later = usageOf();
  journal.append(later);
  await clearing;
  await journal.close(true);
  expect(sizes().toSorted((a, b) => a - b)).toEqual([0, JSON.stringify(later).length + 1]);
});
