import { expect, test } from 'vitest';
import { compare, type Round } from '../../../../bench/support/compare/comparison.js';
import type { Figure } from '../../../../bench/support/compare/figures.js';

const figure = (name: string, value: number, kind: Figure['kind'] = 'CPU', table = 0): Figure => ({
  key: `${table} ${name}`,
  table,
  caption: '',
  name,
  value,
  kind,
});

/** Returns rounds of one figure, each of the commit's value and the present value. */
const rounds = (kind: Figure['kind'], pairs: readonly (readonly [number, number])[]): Round[] =>
  pairs.map(([before, now]) => ({
    before: [figure('it', before, kind)],
    now: [figure('it', now, kind)],
  }));

test('compares medians and reports the smallest and largest ratio of a round', () => {
  const [compared] = compare(
    rounds('CPU', [
      [100, 102],
      [110, 99],
      [90, 99],
    ]),
  );
  expect(compared).toMatchObject({ name: 'it', before: 100, now: 99, verdict: '' });
  expect(compared?.ratio).toBeCloseTo(0.99);
  expect(compared?.spread.map((each) => each.toFixed(2))).toEqual(['0.90', '1.10']);
});

test.each([
  ['CPU that is 6 % higher in each round', 'CPU', [106, 107, 106], 'worse'],
  ['CPU that is 6 % higher, but lower in one round', 'CPU', [106, 107, 99], 'unclear'],
  ['CPU that is 4 % higher', 'CPU', [104, 104, 104], ''],
  ['CPU that is half', 'CPU', [50, 50, 50], ''],
  ['a rate that is 10 % lower in each round', 'rate', [90, 91, 90], 'worse'],
  ['a rate that is twice as high', 'rate', [200, 200, 200], ''],
] as const)('judges %s', (_, kind, values, verdict) => {
  const [compared] = compare(
    rounds(
      kind,
      values.map((value) => [100, value] as const),
    ),
  );
  expect(compared?.verdict).toBe(verdict);
});

test('puts CPU times first in each table', () => {
  const now = [
    figure('a', 1, 'rate'),
    figure('b', 1, 'other'),
    figure('c', 1, 'CPU'),
    figure('d', 1, 'rate', 1),
    figure('e', 1, 'CPU', 1),
  ];
  expect(compare([{ before: now, now }]).map(({ name }) => name)).toEqual([
    'c',
    'a',
    'b',
    'e',
    'd',
  ]);
});

test('compares a figure that only the present state prints with nothing', () => {
  const [compared] = compare([{ before: [], now: [figure('new', 5)] }]);
  expect(compared).toMatchObject({ before: Number.NaN, now: 5, ratio: Number.NaN, verdict: '' });
});
