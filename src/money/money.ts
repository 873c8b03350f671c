import * as z from 'zod';
import { ofField } from '../field-name.js';

/** What amounts are in: credits, pathUSD, and USDC, which is another one on each chain. */
export type Currency = 'usd' | 'pathusd' | 'usdc';

/** Of every currency: an amount is a bigint of such units. */
export const DECIMALS = 6;

/** Base units of one. */
export const ONE = 10n ** BigInt(DECIMALS);

/** Base units of a US cent. */
export const CENT = ONE / 100n;

/** Digits before the point that are taken in a request. */
const MOST_DIGITS = 15;

const WHOLE = `\\d{0,${MOST_DIGITS}}`;
/** Digits with at most one point, and at least one digit. */
const UNROUNDED = new RegExp(`^(?=\\.?\\d)${WHOLE}(?:\\.\\d*)?$`);
const EXACT = new RegExp(`^(?=\\.?\\d)${WHOLE}(?:\\.\\d{0,${DECIMALS}})?$`);

/**
 * An amount of which nothing may be lost, such as one that is compared.
 *
 * @returns base units; undefined for what is malformed or has more than six decimals.
 */
export function parseAmount(text: string): bigint | undefined {
  return EXACT.test(text) ? unitsOf(text) : undefined;
}

/**
 * An amount that is sent: rounded half up to six decimals, so it may be zero.
 *
 * @returns base units; undefined for what is malformed.
 */
export function parseRounded(text: string): bigint | undefined {
  return UNROUNDED.test(text) ? unitsOf(text) : undefined;
}

function unitsOf(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  const kept = fraction.slice(0, DECIMALS).padEnd(DECIMALS, '0');
  const isRoundedUp = fraction.charAt(DECIMALS) >= '5';
  return BigInt(whole + kept) + (isRoundedUp ? 1n : 0n);
}

/** Text with exactly six decimals. */
export function formatAmount(units: bigint): string {
  const digits = (units < 0n ? -units : units).toString().padStart(DECIMALS + 1, '0');
  return `${units < 0n ? '-' : ''}${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`;
}

/** Shares are in 1/10,000 of a percent: these are all of it. */
export const ALL_SHARES = 1_000_000n;

/**
 * Deals a total by shares, to the unit: what remains of the division goes to the largest remainders,
 * of equal ones to the first.
 *
 * @param total base units, not negative.
 * @param shares not negative, together `ALL_SHARES`.
 * @returns base units in the order of the shares, together the total.
 */
export function dealShares(total: bigint, shares: readonly bigint[]): bigint[] {
  const sum = shares.reduce((all, share) => all + share, 0n);
  if (total < 0n || sum !== ALL_SHARES || shares.some((share) => share < 0n)) {
    throw new RangeError('Shares are not negative and add up to all of a total that is not either');
  }
  const dealt = shares.map((share) => (total * share) / ALL_SHARES);
  const left = total - dealt.reduce((all, amount) => all + amount, 0n);
  const remainders = shares.map((share, position) => ({
    position,
    remainder: (total * share) % ALL_SHARES,
  }));
  // The sort keeps the order of equal ones.
  remainders.sort((a, b) => (a.remainder < b.remainder ? 1 : a.remainder > b.remainder ? -1 : 0));
  for (const { position } of remainders.slice(0, Number(left))) {
    dealt[position] = (dealt[position] ?? 0n) + 1n;
  }
  return dealt;
}

/** An amount in a request, of which nothing may be lost: its handler has base units. */
export const amountText = z.codec(
  z
    .string()
    .regex(EXACT, ofField(`must be digits with at most one point and ${DECIMALS} decimals`)),
  z.bigint(),
  { decode: unitsOf, encode: formatAmount },
);

/** An amount in a request that is sent on, rounded half up: its handler has base units. */
export const roundedAmountText = z
  .string()
  .regex(UNROUNDED, ofField('must be digits with at most one point'))
  .transform(unitsOf);

/** An amount in an answer, as `formatAmount` writes it. */
export const formattedAmount = z.string().regex(new RegExp(`^-?\\d+\\.\\d{${DECIMALS}}$`));
