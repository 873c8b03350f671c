import { formatUnits } from 'viem';

/** Removes insignificant zeros from decimal text: `1.50` becomes `1.5`. */
export function plainDecimal(text: string): string {
  const [whole = '', fraction = ''] = text.split('.');
  const digits = fraction.replace(/(?<!0)0+$/, '');
  return (whole.replace(/^0+(?=\d)/, '') || '0') + (digits === '' ? '' : `.${digits}`);
}

/** Formats a token's base units as decimal text in whole tokens. */
export const wholeTokens = (units: bigint, decimals: number): string =>
  plainDecimal(formatUnits(units, decimals));

/** Reports whether base units reach an amount given as decimal text in whole tokens; without rounding. */
export function isAtLeast(units: bigint, decimals: number, wanted: string): boolean {
  const [whole = '', fraction = ''] = wanted.split('.');
  const scale = Math.max(decimals, fraction.length);
  const factor = 10n ** BigInt(scale - decimals);
  return units * factor >= BigInt(whole + fraction.padEnd(scale, '0'));
}
