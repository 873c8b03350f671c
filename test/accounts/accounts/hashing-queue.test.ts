// @module-tag attack
import { expect, test } from 'vitest';
import { HashingQueue } from '../../../src/accounts/accounts/hashing-queue.js';
import { TooManyRequestsError } from '../../../src/lib/errors.js';

/** A queue whose work ends when it is told to, in the order in which it was begun. */
function stalling(bounds: { atOnce: number; waiting: number; waitingPerSite: number }) {
  const queue = new HashingQueue(bounds);
  const begun: string[] = [];
  const refused: string[] = [];
  const endings: (() => void)[] = [];
  return {
    begun,
    refused,
    ask(site: string) {
      const work = () => {
        begun.push(site);
        return new Promise<void>((end) => endings.push(end));
      };
      queue.run(site, work).catch((error: unknown) => {
        expect(error).toBeInstanceOf(TooManyRequestsError);
        if (error instanceof TooManyRequestsError) expect(error.facts.retryAfter).toBe(15);
        refused.push(site);
      });
    },
    async endNext() {
      await settled();
      endings.shift()?.();
      await settled();
    },
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a site that asks a hundred times keeps another waiting for one turn', async () => {
  const { ask, begun, endNext, refused } = stalling({ atOnce: 2, waiting: 50, waitingPerSite: 10 });
  for (let n = 0; n < 100; n++) ask('flood');
  ask('owner');
  await settled();
  expect(begun).toEqual(['flood', 'flood']);
  expect(refused).toHaveLength(88);
  await endNext();
  await endNext();
  expect(begun).toEqual(['flood', 'flood', 'flood', 'owner']);
});

test('when it is full, a site with more has to make room for one with less', async () => {
  const { ask, begun, endNext, refused } = stalling({ atOnce: 1, waiting: 4, waitingPerSite: 3 });
  for (const site of ['a', 'a', 'a', 'b', 'b', 'c', 'd', 'e', 'a']) ask(site);
  await settled();
  // c, d and e have none yet: a, b and nobody make room. There is no room for one more of a.
  expect(refused.toSorted()).toEqual(['a', 'a', 'b', 'e']);
  for (let n = 0; n < 4; n++) await endNext();
  expect(begun).toEqual(['a', 'a', 'b', 'c', 'd']);
});

test('work that fails hands on its turn', async () => {
  const queue = new HashingQueue({ atOnce: 1, waiting: 1, waitingPerSite: 1 });
  const failing = queue.run('a', () => Promise.reject(new Error('of the test')));
  const next = queue.run('b', () => Promise.resolve('done'));
  await expect(failing).rejects.toThrow('of the test');
  expect(await next).toBe('done');
  expect(await queue.run('c', () => Promise.resolve('done'))).toBe('done');
});
