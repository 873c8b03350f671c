import { ALL_SHARES } from '../../types/money.js';

const PERCENT = /^(\d{1,3})(?:\.(\d{1,4}))?$/;

/**
 * Reads a percentage with at most four decimals. Its digits are taken as JSON has them, which a number
 * gives back unchanged: nothing is calculated with the number itself.
 *
 * @returns 1/10,000 of a percent; undefined for what is no share.
 */
export function parseShare(percent: number): bigint | undefined {
  const [, whole, fraction = ''] = PERCENT.exec(String(percent)) ?? [];
  if (whole === undefined) return undefined;
  const share = BigInt(whole + fraction.padEnd(4, '0'));
  return share <= ALL_SHARES ? share : undefined;
}

/** The percentage that a share was read from. */
export const percentOf = (share: number): number => share / 10_000;
