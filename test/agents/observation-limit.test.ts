import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { observationLimit, ObservationLimitError } from '../../src/agents/observation-limit.js';

const PATIENT_MS = 60_000;

test('so many go at a time, and the others after them in their order', async () => {
  const observing = observationLimit(2, PATIENT_MS);
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const all = [0, 1, 2, 3].map((number) =>
    observing(() => {
      started.push(number);
      return new Promise<void>((resolve) => ends.push(resolve));
    }),
  );
  await delay(1);
  expect(started).toEqual([0, 1]);
  ends[0]?.();
  await all[0];
  await delay(1);
  expect(started).toEqual([0, 1, 2]);
  ends[1]?.();
  ends[2]?.();
  await Promise.all([all[1], all[2]]);
  await delay(1);
  ends[3]?.();
  await all[3];
  expect(started).toEqual([0, 1, 2, 3]);
});

test('one that fails leaves its place to the next', async () => {
  const observing = observationLimit(1, PATIENT_MS);
  const failing = observing(() => Promise.reject(new Error('not seen')));
  const next = observing(() => Promise.resolve('seen'));
  await expect(failing).rejects.toThrow('not seen');
  expect(await next).toBe('seen');
});

test('one that has waited for too long is not made, and the next one is', async () => {
  const observing = observationLimit(1, 1);
  let end: (() => void) | undefined;
  const first = observing(() => new Promise<void>((resolve) => (end = resolve)));
  const late = observing(() => Promise.reject(new Error('it is made')));
  await delay(10);
  end?.();
  await first;
  await expect(late).rejects.toBeInstanceOf(ObservationLimitError);
  expect(await observing(() => Promise.resolve('seen'))).toBe('seen');
});
