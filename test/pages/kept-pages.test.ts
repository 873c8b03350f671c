import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PageCache } from '../../src/pages/page-cache.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** With its name and 200 bytes beside it, 400. */
const ANSWER = 'a'.repeat(97);

const names = (kept: PageCache<string>) =>
  ['a', 'b', 'c', 'd'].filter((name) => kept.get(name) !== undefined);

test('an answer is given again until its time is up, and not at all when it has none', () => {
  const kept = new PageCache<string>(1_000);
  kept.set('a', ANSWER, 1_000);
  kept.set('b', ANSWER, 0);
  vi.advanceTimersByTime(999);
  expect(names(kept)).toEqual(['a']);
  vi.advanceTimersByTime(1);
  expect(names(kept)).toEqual([]);
});

test('the oldest go first where all would be too much', () => {
  const kept = new PageCache<string>(800);
  for (const name of ['a', 'b', 'c']) kept.set(name, ANSWER, 1_000);
  expect(names(kept)).toEqual(['b', 'c']);
});

test('what is larger than all may be is not kept, and nothing goes for it', () => {
  const kept = new PageCache<string>(800);
  kept.set('a', ANSWER, 1_000);
  kept.set('b', ANSWER.repeat(9), 1_000);
  expect(names(kept)).toEqual(['a']);
});

test('one that is kept anew, or whose time is up, takes no room twice', () => {
  const kept = new PageCache<string>(800);
  kept.set('a', ANSWER, 1_000);
  for (let time = 0; time < 5; time++) kept.set('b', ANSWER, 1_000);
  expect(names(kept)).toEqual(['a', 'b']);
  vi.advanceTimersByTime(1_000);
  expect(names(kept)).toEqual([]);
  for (const name of ['c', 'd']) kept.set(name, ANSWER, 1_000);
  expect(names(kept)).toEqual(['c', 'd']);
});
