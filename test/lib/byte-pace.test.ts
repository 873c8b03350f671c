import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test, vi } from 'vitest';
import { BytePace, pipePaced } from '../../src/lib/byte-pace.js';

test('admits the bytes of one second immediately, then waits for what was sent too early', () => {
  let now = 0;
  const pace = new BytePace(1_000, () => now);
  expect(pace.take(1_000)).toBe(0);
  expect(pace.take(500)).toBe(500);
  now += 250;
  expect(pace.take(0)).toBe(250);
  now += 60_000;
  expect(pace.take(1_001)).toBe(1);
});

test('copies a stream whole at its pace', async () => {
  vi.useFakeTimers();
  try {
    const pace = new BytePace(1_000, () => Date.now());
    const sink = new PassThrough();
    const copied = buffer(sink);
    let isDone = false;
    void copied.then(() => (isDone = true));
    pipePaced(Readable.from([Buffer.alloc(1_000), Buffer.alloc(500), Buffer.alloc(1)]), sink, pace);
    await vi.advanceTimersByTimeAsync(400);
    expect(isDone).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(await copied).toHaveLength(1_501);
  } finally {
    vi.useRealTimers();
  }
});
