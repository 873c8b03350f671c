import type { CatalogueModel } from './catalogue-data.js';
import type { TokenUsage } from '../completion/completion.js';

/** A million tokens' rate and a dollar's millionth: both have six decimals. */
const MILLION = 1_000_000n;

const micro = (dollars: number): bigint => BigInt(Math.round(dollars * 1e6));

/**
 * What a call cost, in US dollars with six decimals: exact, and rounded half up once. A model
 * without a rate, such as one of a local server, costs nothing.
 */
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
