import { formatUnits } from 'viem';

/** Decimal text without zeros that say nothing: `1.50` is `1.5`. */
export function plainDecimal(text: string): string {
  const [whole = '', fraction = ''] = text.split('.');
  const digits = fraction.replace(/(?<!0)0+$/, '');
  return (whole.replace(/^0+(?=\d)/, '') || '0') + (digits === '' ? '' : `.${digits}`);
}

/** Base units of a token as decimal text of whole ones. */
export const wholeTokens = (units: bigint, decimals: number): string =>
  plainDecimal(formatUnits(units, decimals));

/** Whether so many base units are as much as decimal text says of whole ones; nothing is rounded. */
export function isAtLeast(units: bigint, decimals: number, wanted: string): boolean {
  const [whole = '', fraction = ''] = wanted.split('.');
  const scale = Math.max(decimals, fraction.length);
  const factor = 10n ** BigInt(scale - decimals);
  return units * factor >= BigInt(whole + fraction.padEnd(scale, '0'));
}
