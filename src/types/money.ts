import * as z from 'zod';
import { fieldMessage } from '../lib/field-name.js';

/** The currency of an amount: credits, pathUSD or USDC. USDC counts as a separate currency on each chain. */
export type Currency = 'usd' | 'pathusd' | 'usdc';

/** Decimals of every currency; amounts are bigints of base units. */
export const DECIMALS = 6;

/** Base units of one whole unit. */
export const ONE = 10n ** BigInt(DECIMALS);

/** Base units of a US cent. */
export const CENT = ONE / 100n;

/** Maximum number of digits before the decimal point in a request. */
const MOST_DIGITS = 15;

const WHOLE = `\\d{0,${MOST_DIGITS}}`;
/** At least one digit and at most one decimal point. */
const UNROUNDED = new RegExp(`^(?=\\.?\\d)${WHOLE}(?:\\.\\d*)?$`);
const EXACT = new RegExp(`^(?=\\.?\\d)${WHOLE}(?:\\.\\d{0,${DECIMALS}})?$`);

/** Parses an amount exactly, to base units; undefined if malformed or beyond six decimals. */
export function parseAmount(text: string): bigint | undefined {
  return EXACT.test(text) ? unitsOf(text) : undefined;
}

/** Parses an amount, rounded half up to base units, possibly to zero; undefined if malformed. */
export function parseRounded(text: string): bigint | undefined {
  return UNROUNDED.test(text) ? unitsOf(text) : undefined;
}

function unitsOf(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  const kept = fraction.slice(0, DECIMALS).padEnd(DECIMALS, '0');
  const isRoundedUp = fraction.charAt(DECIMALS) >= '5';
  return BigInt(whole + kept) + (isRoundedUp ? 1n : 0n);
}

/** Formats an amount with exactly six decimals. */
export function formatAmount(units: bigint): string {
  const digits = (units < 0n ? -units : units).toString().padStart(DECIMALS + 1, '0');
  return `${units < 0n ? '-' : ''}${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`;
}

/** The sum of all shares: 100 %, in units of 1/10,000 of a percent. */
export const WHOLE_SHARE = 1_000_000n;

/**
 * Divides a total (not negative) by shares that sum to `WHOLE_SHARE`, without loss: units left by rounding down
 * go to the largest remainders, and among equals to the first.
 */
export function allocateByShares(total: bigint, shares: readonly bigint[]): bigint[] {
  const sum = shares.reduce((all, share) => all + share, 0n);
  if (total < 0n || sum !== WHOLE_SHARE || shares.some((share) => share < 0n)) {
    throw new RangeError(
      'The total and the shares must not be negative, and the shares must add up to 100 %',
    );
  }
  const dealt = shares.map((share) => (total * share) / WHOLE_SHARE);
  const left = total - dealt.reduce((all, amount) => all + amount, 0n);
  const remainders = shares.map((share, position) => ({
    position,
    remainder: (total * share) % WHOLE_SHARE,
  }));
  // The sort is stable, so equal remainders keep their order.
  remainders.sort((a, b) => (a.remainder < b.remainder ? 1 : a.remainder > b.remainder ? -1 : 0));
  for (const { position } of remainders.slice(0, Number(left))) {
    dealt[position] = (dealt[position] ?? 0n) + 1n;
  }
  return dealt;
}

/** An exact amount in a request, parsed to base units. */
export const amountText = z.codec(
  z
    .string()
    .regex(EXACT, fieldMessage(`must be digits with at most one point and ${DECIMALS} decimals`)),
  z.bigint(),
  { decode: unitsOf, encode: formatAmount },
);

/** An amount to send in a request, rounded half up and parsed to base units. */
export const roundedAmountText = z
  .string()
  .regex(UNROUNDED, fieldMessage('must be digits with at most one point'))
  .transform(unitsOf);

/** An amount in an answer. */
export const formattedAmount = z
  .string()
  .regex(new RegExp(`^-?\\d+\\.\\d{${DECIMALS}}$`))
  .meta({ id: 'Amount', examples: ['0.250000'] });
