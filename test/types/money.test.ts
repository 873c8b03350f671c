import { describe, expect, test } from 'vitest';
import {
  WHOLE_SHARE,
  amountText,
  CENT,
  allocateByShares,
  formatAmount,
  formattedAmount,
  ONE,
  parseAmount,
  parseRounded,
  roundedAmountText,
} from '../../src/types/money.js';
import { Random } from '../support/random.js';

const seed = Math.floor(Math.random() * 2 ** 32);
const random = new Random(seed);
const said = `seed ${seed}`;

/** Returns at most `most` random digits. */
const digits = (most: number) =>
  Array.from({ length: random.below(most + 1) }, () => random.below(10)).join('');

const sum = (amounts: readonly bigint[]) => amounts.reduce((all, amount) => all + amount, 0n);

/** Returns shares of random sizes, many equal and some zero. */
function someShares(count: number): bigint[] {
  const cuts = Array.from({ length: count - 1 }, () =>
    BigInt(random.isOneIn(3) ? random.below(4) * 250_000 : random.below(1_000_001)),
  ).sort((a, b) => Number(a - b));
  return [...cuts, WHOLE_SHARE].map((cut, index) => cut - (cuts[index - 1] ?? 0n));
}

describe('amount', () => {
  test('parses a formatted amount to the same base units', () => {
    for (let n = 0; n < 2_000; n += 1) {
      const units = BigInt(`0${digits(21)}`);
      expect(parseAmount(formatAmount(units)), said).toBe(units);
      expect(parseRounded(formatAmount(units)), said).toBe(units);
    }
  });

  test('formats a parsed amount as it was written, except for zeros around it', () => {
    for (let n = 0; n < 2_000; n += 1) {
      const [whole, fraction] = [digits(15), digits(6)];
      if (whole + fraction === '') continue;
      const canonical = `${whole.replace(/^0+/, '') || '0'}.${fraction.padEnd(6, '0')}`;
      const units = parseAmount(`${whole}.${fraction}`);
      expect(units === undefined ? undefined : formatAmount(units), said).toBe(canonical);
    }
  });

  test.each([
    ['0', 0n],
    ['1', ONE],
    ['0.01', CENT],
    ['1.0', ONE],
    ['1.', ONE],
    ['.5', 500_000n],
    ['007.000001', 7_000_001n],
    ['999999999999999.999999', 10n ** 21n - 1n],
  ])('parses %s to %d base units', (text, units) => {
    expect(parseAmount(text)).toBe(units);
    expect(parseRounded(text)).toBe(units);
  });

  test.each([
    ...['', '.', ' 1', '1 ', '1\n', '+1', '-1', '1e3', '1,000', '1_000', '1.2.3', '..1', '0x10'],
    ...['1n', 'NaN', 'Infinity', '١', '１', '1000000000000000', '0000000000000001'],
  ])('rejects %j as an amount', { tags: 'attack' }, (text) => {
    expect(parseAmount(text)).toBeUndefined();
    expect(parseRounded(text)).toBeUndefined();
    expect(amountText.safeParse(text).success).toBe(false);
    expect(roundedAmountText.safeParse(text).success).toBe(false);
  });

  test('rejects more than six decimals where an amount is compared', () => {
    expect(parseAmount('0.9999999')).toBeUndefined();
    expect(parseAmount('1.0000000')).toBeUndefined();
    expect(amountText.safeParse('0.9999999').success).toBe(false);
  });

  test.each([
    ['0.9999999', ONE],
    ['0.9999994', 999_999n],
    ['0.99999949999', 999_999n],
    ['0.0000005', 1n],
    ['0.00000049', 0n],
    ['999999999999999.9999995', 10n ** 21n],
  ])('rounds %s half up to %d base units where an amount is sent', (text, units) => {
    expect(parseRounded(text)).toBe(units);
    expect(roundedAmountText.parse(text)).toBe(units);
  });

  test('formats amounts with six decimals, including negative ones', () => {
    expect(formatAmount(0n)).toBe('0.000000');
    expect(formatAmount(-1n)).toBe('-0.000001');
    expect(formatAmount(-5n * ONE)).toBe('-5.000000');
    for (const units of [0n, 1n, -1n, ONE, 10n ** 30n]) {
      expect(formattedAmount.safeParse(formatAmount(units)).success).toBe(true);
    }
    expect(formattedAmount.safeParse('5').success).toBe(false);
  });

  test('passes an amount in a request to its handler in base units', () => {
    expect(amountText.parse('1.50')).toBe(1_500_000n);
    expect(amountText.safeParse(1.5).success).toBe(false);
  });
});

describe('shares', () => {
  test('deals a total completely, each share within a unit of its exact value', () => {
    for (let n = 0; n < 300; n += 1) {
      const total = BigInt(`0${digits(21)}`);
      const shares = someShares(1 + random.below(100));
      const dealt = allocateByShares(total, shares);
      expect(sum(dealt), said).toBe(total);
      const off = dealt.map((amount, n) => amount * WHOLE_SHARE - total * (shares[n] ?? 0n));
      const isNear = off.every((units) => units > -WHOLE_SHARE && units < WHOLE_SHARE);
      expect(isNear, said).toBe(true);
    }
  });

  test('assigns the rest to the largest remainders, and to the first of equal ones', () => {
    expect(allocateByShares(1n, [500_000n, 500_000n])).toEqual([1n, 0n]);
    expect(allocateByShares(2n, [333_333n, 333_333n, 333_334n])).toEqual([1n, 0n, 1n]);
    expect(allocateByShares(10n, [333_333n, 333_333n, 333_334n])).toEqual([3n, 3n, 4n]);
    expect(allocateByShares(1n, [0n, 400_000n, 600_000n])).toEqual([0n, 0n, 1n]);
  });

  test('calculates the same shares every time', () => {
    const shares = someShares(50);
    expect(allocateByShares(12_345_678n, shares)).toEqual(allocateByShares(12_345_678n, shares));
  });

  test('rejects negative shares and shares that do not add up', () => {
    for (const shares of [[], [999_999n], [1_000_001n], [-1n, 1_000_001n]]) {
      expect(() => allocateByShares(1n, shares)).toThrow(RangeError);
    }
    expect(() => allocateByShares(-1n, [WHOLE_SHARE])).toThrow(RangeError);
  });
});
