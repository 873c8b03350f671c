import { describe, expect, test } from 'vitest';
import { parsePercentage, percentageOf } from '../../../src/money/splits/percentages.js';
import {
  splitStatusOf,
  type PayoutStatus,
  type SplitStatus,
} from '../../../src/types/split-states.js';

describe('a share', () => {
  test.each([
    [0, 0n],
    [100, 1_000_000n],
    [0.0001, 1n],
    [33.3333, 333_333n],
    [99.9999, 999_999n],
    // Numbers of which no sum or product is exact.
    [0.1, 1_000n],
    [0.2, 2_000n],
    [1.005, 10_050n],
  ])('of %d percent is %d', (percent, share) => {
    expect(parsePercentage(percent)).toBe(share);
    expect(percentageOf(Number(share))).toBe(percent);
  });

  test.each([-1, -0.0001, 100.0001, 101, 0.00001, 1e-7, 33.33333, 1e21, NaN, Infinity])(
    'is not %d percent',
    (percent) => {
      expect(parsePercentage(percent)).toBeUndefined();
    },
  );

  test('is the same when it is read from what it was written as', () => {
    for (let share = 0; share <= 1_000_000; share += 997) {
      expect(parsePercentage(percentageOf(share))).toBe(BigInt(share));
    }
  });
});

describe('what becomes of a split', () => {
  test.each<[SplitStatus, PayoutStatus[]]>([
    ['completed', ['confirmed', 'confirmed']],
    ['completed', ['confirmed', 'skipped']],
    ['completed', ['skipped']],
    ['partial', ['confirmed', 'failed']],
    ['partial', ['skipped', 'failed', 'confirmed']],
    ['failed', ['failed', 'failed']],
    // Nothing was sent to anybody.
    ['failed', ['failed', 'skipped']],
    ['processing', ['confirmed', 'sent']],
    ['processing', ['failed', 'pending']],
  ])('is %s with payouts %s', (status, payouts) => {
    expect(splitStatusOf(payouts)).toBe(status);
  });
});
