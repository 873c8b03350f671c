import { describe, expect, test } from 'vitest';
import { isAtLeast, plainDecimal, wholeTokens } from '../../../src/money/chain/amount.js';

test.each([
  ['1', '1'],
  ['1.50', '1.5'],
  ['10.0', '10'],
  ['007', '7'],
  ['0.0', '0'],
  ['00.010', '0.01'],
])('%s is written %s', (text, plain) => {
  expect(plainDecimal(text)).toBe(plain);
});

test.each([
  [0n, 6, '0'],
  [1n, 6, '0.000001'],
  [1_500_000n, 6, '1.5'],
  [42n, 0, '42'],
  [2n ** 256n - 1n, 18, `${(2n ** 256n - 1n) / 10n ** 18n}.584007913129639935`],
])('%d units of %d decimals are %s', (units, decimals, text) => {
  expect(wholeTokens(units, decimals)).toBe(text);
});

describe('enough units for an amount', () => {
  test.each([
    [1_000_000n, 6, '1', true],
    [999_999n, 6, '1', false],
    [0n, 6, '0', true],
    [1n, 6, '0.000001', true],
    // An amount below the token's smallest unit is not rounded down to zero.
    [0n, 6, '0.0000001', false],
    [1n, 6, '0.0000001', true],
    [1n, 0, '1.000000000000000001', false],
    [2n, 0, '1.000000000000000001', true],
    // As JavaScript numbers, these would be equal.
    [9_007_199_254_740_992_999_999n, 6, '9007199254740993', false],
    [9_007_199_254_740_993_000_000n, 6, '9007199254740993', true],
  ])('%d units with %d decimals are enough for %s: %s', (units, decimals, wanted, enough) => {
    expect(isAtLeast(units, decimals, wanted)).toBe(enough);
  });
});
