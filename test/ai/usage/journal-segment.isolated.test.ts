import type * as fs from 'node:fs';
import { readFileSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { JournalSegment } from '../../../src/ai/usage/journal-segment.js';
import { usageOf } from './ledger.js';

vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>();
  return { ...real, writeSync: vi.fn(real.writeSync) };
});

test('a record cut off by a full disk does not damage the next one', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-segment-'));
  const file = path.join(folder, 'a.jsonl');
  const segment = new JournalSegment(file);
  const [half, whole] = [usageOf(), usageOf()];
  const { writeSync: really } = await vi.importActual<typeof fs>('node:fs');
  vi.mocked(writeSync)
    .mockImplementationOnce((fd, buffer) => really(fd, Buffer.from(String(buffer)), 0, 40))
    .mockImplementationOnce(() => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    });
  expect(() => segment.append(half)).toThrow('no space');
  segment.append(whole);
  segment.close();
  const lines = readFileSync(file, 'utf8').split('\n');
  expect(lines).toEqual([JSON.stringify(half).slice(0, 40), JSON.stringify(whole), '']);
  expect(segment.records).toEqual([half, whole]);
  await rm(folder, { recursive: true });
});
