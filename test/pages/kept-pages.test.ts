import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PageCache } from '../../src/pages/page-cache.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** An answer that counts as 400 bytes, with its name and an overhead of 200 bytes. */
const ANSWER = 'a'.repeat(97);

const names = (kept: PageCache<string>) =>
  ['a', 'b', 'c', 'd'].filter((name) => kept.get(name) !== undefined);

test('caches an answer for its lifetime, and not at all without one', () => {
  const kept = new PageCache<string>(1_000);
  kept.set('a', ANSWER, 1_000);
  kept.set('b', ANSWER, 0);
  vi.advanceTimersByTime(999);
  expect(names(kept)).toEqual(['a']);
  vi.advanceTimersByTime(1);
  expect(names(kept)).toEqual([]);
});

test('evicts the oldest answers when the cache is full', () => {
  const kept = new PageCache<string>(800);
  for (const name of ['a', 'b', 'c']) kept.set(name, ANSWER, 1_000);
  expect(names(kept)).toEqual(['b', 'c']);
});

test('does not cache an answer larger than the cache, and evicts nothing for it', () => {
  const kept = new PageCache<string>(800);
  kept.set('a', ANSWER, 1_000);
  kept.set('b', ANSWER.repeat(9), 1_000);
  expect(names(kept)).toEqual(['a']);
});

test('frees the space of replaced and expired answers', () => {
  const kept = new PageCache<string>(800);
  kept.set('a', ANSWER, 1_000);
  for (let time = 0; time < 5; time++) kept.set('b', ANSWER, 1_000);
  expect(names(kept)).toEqual(['a', 'b']);
  vi.advanceTimersByTime(1_000);
  expect(names(kept)).toEqual([]);
  for (const name of ['c', 'd']) kept.set(name, ANSWER, 1_000);
  expect(names(kept)).toEqual(['c', 'd']);
});
