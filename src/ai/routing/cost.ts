import type { CatalogueModel } from './catalogue-data.js';
import type { TokenUsage } from '../completion/completion.js';

/** Six decimals, for both tokens per rate and micro-dollars per dollar. */
const MILLION = 1_000_000n;

const micro = (dollars: number): bigint => BigInt(Math.round(dollars * 1e6));

/** Returns US dollars with six decimals, rounded half up once. A model without a rate is free. */
export function costOf(
  rates: Pick<CatalogueModel, 'inputCost' | 'outputCost'> | undefined,
  { inputTokens, outputTokens }: TokenUsage,
): string {
  if (rates === undefined) return formatMicro(0n);
  const millionths =
    BigInt(inputTokens) * micro(rates.inputCost) + BigInt(outputTokens) * micro(rates.outputCost);
  return formatMicro((millionths + MILLION / 2n) / MILLION);
}

function formatMicro(amount: bigint): string {
  return `${amount / MILLION}.${String(amount % MILLION).padStart(6, '0')}`;
}
