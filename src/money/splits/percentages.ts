import { WHOLE_SHARE } from '../../types/money.js';

const PERCENTAGE = /^(\d{1,3})(?:\.(\d{1,4}))?$/;

/**
 * Parses a percentage with at most four decimals from its digits, without arithmetic on the number: JSON
 * numbers print unchanged.
 *
 * @returns the share in 1/10,000 of a percent; undefined for any other number.
 */
export function parsePercentage(percentage: number): bigint | undefined {
  const [, whole, fraction = ''] = PERCENTAGE.exec(String(percentage)) ?? [];
  if (whole === undefined) return undefined;
  const share = BigInt(whole + fraction.padEnd(4, '0'));
  return share <= WHOLE_SHARE ? share : undefined;
}

/** Returns the percentage of a share in 1/10,000 of a percent. */
export const percentageOf = (share: number): number => share / 10_000;
