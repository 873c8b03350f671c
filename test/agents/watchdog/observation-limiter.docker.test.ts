import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  observationLimiter,
  ObservationLimitError,
} from '../../../src/agents/watchdog/observation-limiter.js';

const PATIENT_MS = 60_000;

test('so many go at a time, and the others after them, owner by owner', async () => {
  const observing = observationLimiter(2, PATIENT_MS);
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const all = [0, 1, 2, 3].map((number) =>
    observing.run({ owner: `owner ${number}` }, () => {
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

test('a failed observation frees its place for the next one', async () => {
  const observing = observationLimiter(1, PATIENT_MS);
  const failing = observing.run({ owner: 'one' }, () => Promise.reject(new Error('not seen')));
  const next = observing.run({ owner: 'other' }, () => Promise.resolve('seen'));
  await expect(failing).rejects.toThrow('not seen');
  expect(await next).toBe('seen');
});

test('an observation that has waited for too long is dropped, and the next one is made', async () => {
  const observing = observationLimiter(1, 1);
  let end: (() => void) | undefined;
  const first = observing.run(
    { owner: 'one' },
    () => new Promise<void>((resolve) => (end = resolve)),
  );
  const late = observing.run({ owner: 'one' }, () => Promise.reject(new Error('it is made')));
  await expect(late).rejects.toBeInstanceOf(ObservationLimitError);
  end?.();
  await first;
  expect(await observing.run({ owner: 'one' }, () => Promise.resolve('seen'))).toBe('seen');
});

test(
  'unresponsive agents of one owner do not delay the checks of other owners',
  { tags: 'attack' },
  async () => {
    const observing = observationLimiter(10, PATIENT_MS);
    const ends: (() => void)[] = [];
    const hanging = Array.from({ length: 100 }, () =>
      observing.run({ owner: 'one' }, () => new Promise<void>((resolve) => ends.push(resolve))),
    );
    await delay(1);
    for (let count = 0; count < 20; count++) {
      expect(await observing.run({ owner: 'other' }, () => Promise.resolve('seen'))).toBe('seen');
    }
    expect(ends).toHaveLength(5);
    while (ends.length > 0) {
      ends.shift()?.();
      await delay(0);
    }
    await Promise.all(hanging);
  },
);
