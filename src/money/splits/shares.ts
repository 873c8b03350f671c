import { ALL_SHARES } from '../../types/money.js';

const PERCENT = /^(\d{1,3})(?:\.(\d{1,4}))?$/;

/**
 * Parses a percentage with at most four decimals from its digits in JSON, without floating-point
 * arithmetic.
 *
 * @returns units of 1/10,000 of a percent; undefined for an invalid share.
 */
export function parseShare(percent: number): bigint | undefined {
  const [, whole, fraction = ''] = PERCENT.exec(String(percent)) ?? [];
  if (whole === undefined) return undefined;
  const share = BigInt(whole + fraction.padEnd(4, '0'));
  return share <= ALL_SHARES ? share : undefined;
}

/** Returns the percentage of a share. */
export const percentOf = (share: number): number => share / 10_000;
