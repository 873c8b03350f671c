import { expect, test } from 'vitest';
import { setBounded } from '../../src/lib/bounded-map.js';

const keysAfter = (keys: readonly number[], max: number): number[] => {
  const map = new Map<number, number>();
  for (const key of keys) setBounded(map, key, key, max);
  return [...map.keys()];
};

test('evicts the key set longest ago', () => {
  expect(keysAfter([1, 2, 3, 1, 4], 3)).toEqual([3, 1, 4]);
});

test('stores the newest value of a key', () => {
  const map = new Map([['a', 1]]);
  setBounded(map, 'a', 2, 10);
  expect([...map]).toEqual([['a', 2]]);
});

test('evicts several keys of a large map at once, and never more than its size', () => {
  const keys = Array.from({ length: 641 }, (_, key) => key);
  expect(keysAfter(keys, 640)).toEqual(keys.slice(10));
  expect(keysAfter([1, 2], 1)).toEqual([2]);
});

test('never evicts a key that is set again and again', () => {
  const often = Array.from({ length: 3_000 }, (_, at) => (at % 10 === 0 ? 0 : at));
  expect(keysAfter(often, 100)).toContain(0);
});
