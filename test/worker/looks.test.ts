import { expect, test } from 'vitest';
import { Looks, NoTurnError } from '../../src/agents/looks.js';

const PATIENT_MS = 60_000;

test('so many go at a time, and the others after them in their order', async () => {
  const looks = new Looks(2, PATIENT_MS);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const all = [0, 1, 2, 3].map((number) =>
    looks.take(() => {
      begun.push(number);
      return new Promise<void>((resolve) => ends.push(resolve));
    }),
  );
  expect(begun).toEqual([0, 1]);
  ends[0]?.();
  await all[0];
  expect(begun).toEqual([0, 1, 2]);
  ends[1]?.();
  ends[2]?.();
  await Promise.all([all[1], all[2]]);
  ends[3]?.();
  await all[3];
  expect(begun).toEqual([0, 1, 2, 3]);
});

test('one that fails leaves its place to the next', async () => {
  const looks = new Looks(1, PATIENT_MS);
  const failing = looks.take(() => Promise.reject(new Error('not seen')));
  const next = looks.take(() => Promise.resolve('seen'));
  await expect(failing).rejects.toThrow('not seen');
  expect(await next).toBe('seen');
});

test('one whose turn does not come is told so, and takes no place later', async () => {
  const looks = new Looks(1, 1);
  let end: (() => void) | undefined;
  const first = looks.take(() => new Promise<void>((resolve) => (end = resolve)));
  await expect(looks.take(() => Promise.resolve())).rejects.toBeInstanceOf(NoTurnError);
  end?.();
  await first;
  expect(await looks.take(() => Promise.resolve('seen'))).toBe('seen');
});
