import { describe, expect, test } from 'vitest';
import { parsePercentage, percentageOf } from '../../../src/money/splits/percentages.js';
import {
  splitStatusOf,
  type PayoutStatus,
  type SplitStatus,
} from '../../../src/types/split-states.js';

describe('shares', () => {
  test.each([
    [0, 0n],
    [100, 1_000_000n],
    [0.0001, 1n],
    [33.3333, 333_333n],
    [99.9999, 999_999n],
    // Numbers whose sums and products are inexact.
    [0.1, 1_000n],
    [0.2, 2_000n],
    [1.005, 10_050n],
  ])('parses a share of %d percent as %d', (percent, share) => {
    expect(parsePercentage(percent)).toBe(share);
    expect(percentageOf(Number(share))).toBe(percent);
  });

  test.each([-1, -0.0001, 100.0001, 101, 0.00001, 1e-7, 33.33333, 1e21, NaN, Infinity])(
    'rejects a share of %d percent',
    (percent) => {
      expect(parsePercentage(percent)).toBeUndefined();
    },
  );

  test('parses a formatted share to the same value', () => {
    for (let share = 0; share <= 1_000_000; share += 997) {
      expect(parsePercentage(percentageOf(share))).toBe(BigInt(share));
    }
  });
});

describe('split status', () => {
  test.each<[SplitStatus, PayoutStatus[]]>([
    ['completed', ['confirmed', 'confirmed']],
    ['completed', ['confirmed', 'skipped']],
    ['completed', ['skipped']],
    ['partial', ['confirmed', 'failed']],
    ['partial', ['skipped', 'failed', 'confirmed']],
    ['failed', ['failed', 'failed']],
    // No payout was sent.
    ['failed', ['failed', 'skipped']],
    ['processing', ['confirmed', 'sent']],
    ['processing', ['failed', 'pending']],
  ])('returns %s for a split with payouts %s', (status, payouts) => {
    expect(splitStatusOf(payouts)).toBe(status);
  });
});
