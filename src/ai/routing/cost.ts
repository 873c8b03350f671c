import type { CatalogueModel } from '../models/catalogue.js';
import type { TokenUsage } from '../completion/completion.js';

/** Six decimals, for both tokens per rate and micro-dollars per dollar. */
const MILLION = 1_000_000n;

const micro = (dollars: number): bigint => BigInt(Math.round(dollars * 1e6));

/** Rates of a model; without a rate of its own, the cache costs what other input costs. */
type Rates = Pick<CatalogueModel, 'inputCost' | 'outputCost' | 'cacheReadCost' | 'cacheWriteCost'>;

/** Returns US dollars with six decimals, rounded half up once. A model without a rate is free. */
export function costOf(rates: Rates | undefined, usage: TokenUsage): string {
  if (rates === undefined) return formatMicro(0n);
  const { inputCost, outputCost, cacheReadCost = inputCost, cacheWriteCost = inputCost } = rates;
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  const uncached = inputTokens - cacheReadTokens - cacheWriteTokens;
  const millionths =
    BigInt(uncached) * micro(inputCost) +
    BigInt(cacheReadTokens) * micro(cacheReadCost) +
    BigInt(cacheWriteTokens) * micro(cacheWriteCost) +
    BigInt(outputTokens) * micro(outputCost);
  return formatMicro((millionths + MILLION / 2n) / MILLION);
}

function formatMicro(amount: bigint): string {
  return `${amount / MILLION}.${String(amount % MILLION).padStart(6, '0')}`;
}
