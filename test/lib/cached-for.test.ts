import { expect, test } from 'vitest';
import { cachedFor } from '../../src/lib/cached-for.js';

function asking() {
  let now = 0;
  const open: { answer(value: number): void; fail(error: Error): void }[] = [];
  const ask = cachedFor(
    1_000,
    () => new Promise<number>((answer, fail) => open.push({ answer, fail })),
    () => now,
  );
  return { ask, open, wait: (ms: number) => (now += ms) };
}

test('shares one request of any duration among concurrent callers', async () => {
  const { ask, open, wait } = asking();
  const answers = [ask(), ask()];
  wait(60_000);
  answers.push(ask());
  open[0]?.answer(7);
  expect([await Promise.all(answers), open.length]).toEqual([[7, 7, 7], 1]);
});

test('caches an answer for its lifetime', async () => {
  const { ask, open, wait } = asking();
  const first = ask();
  open[0]?.answer(7);
  await first;
  wait(999);
  expect(await ask()).toBe(7);
  wait(1);
  const second = ask();
  open[1]?.answer(8);
  expect([await second, open.length]).toEqual([8, 2]);
});

test('does not cache a failure', async () => {
  const { ask, open } = asking();
  const failing = ask();
  open[0]?.fail(new Error('failed on purpose'));
  await expect(failing).rejects.toThrow('failed on purpose');
  const again = ask();
  open[1]?.answer(7);
  expect(await again).toBe(7);
});
