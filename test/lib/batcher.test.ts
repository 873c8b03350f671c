import { expect, test } from 'vitest';
import { Batcher } from '../../src/lib/batcher.js';
import { UnavailableError } from '../../src/lib/errors.js';

/** Creates a batcher whose batches wait until `finish` ends them. */
function held(maxItems: number) {
  const batches: { items: readonly number[]; finish: (error?: Error) => void }[] = [];
  const batcher = new Batcher<number, string>(
    (items) =>
      new Promise((resolve, reject) => {
        batches.push({
          items,
          finish: (error) => (error ? reject(error) : resolve(items.map((item) => `did ${item}`))),
        });
      }),
    maxItems,
  );
  const finish = (index: number, error?: Error) => batches[index]?.finish(error);
  return { batcher, batches, finish };
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

test('starts the first batch at once and batches items that arrive while it runs', async () => {
  const { batcher, batches, finish } = held(100);
  const results = [1, 2, 3].map((item) => batcher.add(item));
  expect(batches.map(({ items }) => items)).toEqual([[1]]);
  finish(0);
  await expect.poll(() => batches.length).toBe(2);
  expect(batches[1]?.items).toEqual([2, 3]);
  finish(1);
  expect(await Promise.all(results)).toEqual(['did 1', 'did 2', 'did 3']);
});

test('returns each result to its item, regardless of the order of arrival', async () => {
  const batcher = new Batcher<number, number>(async (items) => {
    await Promise.resolve();
    return items.map((item) => item * 2);
  }, 7);
  const results: Promise<number>[] = [];
  for (const item of upTo(500)) {
    results.push(batcher.add(item));
    if (item % 11 === 0) await Promise.resolve();
  }
  expect(await Promise.all(results)).toEqual(upTo(500).map((item) => item * 2));
});

test('keeps batches within the maximum size and runs one at a time', async () => {
  let running = 0;
  const sizes: number[] = [];
  const batcher = new Batcher<number, number>(async (items) => {
    expect(++running).toBe(1);
    sizes.push(items.length);
    await Promise.resolve();
    running--;
    return items;
  }, 10);
  await Promise.all(upTo(35).map((item) => batcher.add(item)));
  expect(sizes).toEqual([1, 10, 10, 10, 4]);
});

test('rejects all items of a failed batch and no other items', async () => {
  const { batcher, batches, finish } = held(2);
  const outcomes = Promise.allSettled(upTo(5).map((item) => batcher.add(item)));
  finish(0);
  await expect.poll(() => batches.length).toBe(2);
  finish(1, new Error('database unavailable'));
  await expect.poll(() => batches.length).toBe(3);
  finish(2);
  expect((await outcomes).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'rejected',
    'fulfilled',
    'fulfilled',
  ]);
});

test('treats an error thrown synchronously as a failure of the batch', async () => {
  let broken = true;
  const batcher = new Batcher<number, number>((items) => {
    if (broken) throw new TypeError('no connection');
    return Promise.resolve(items);
  }, 5);
  await expect(batcher.add(1)).rejects.toThrow('no connection');
  broken = false;
  expect(await batcher.add(2)).toBe(2);
});

test('rejects a batch that returns the wrong number of results', async () => {
  const batcher = new Batcher<number, number>(() => Promise.resolve([]), 5);
  await expect(batcher.add(1)).rejects.toThrow(RangeError);
});

test('refuses items while too many wait, and accepts them again later', async () => {
  const { batcher, batches, finish } = held(10_000);
  const first = batcher.add(0);
  const waiting = upTo(10_000).map((item) => batcher.add(item));
  await expect(batcher.add(1)).rejects.toThrow(UnavailableError);
  finish(0);
  await first;
  await expect.poll(() => batches.length).toBe(2);
  const next = batcher.add(2);
  finish(1);
  expect(await Promise.all(waiting)).toHaveLength(10_000);
  await expect.poll(() => batches.length).toBe(3);
  finish(2);
  expect(await next).toBe('did 2');
});
