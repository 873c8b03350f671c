/** Maximum cost of a signed transaction, in the chain's fee unit: 10^-18 of a dollar on Tempo, else wei. */
export interface FeeLimits {
  /** Maximum per unit of gas. */
  readonly unit: bigint;
  /** Maximum for the whole transaction: its gas limit at its highest fee. */
  readonly transaction: bigint;
}

/** About ten times the usual fee on Tempo, and 10 USD. */
const OF_TEMPO: FeeLimits = { unit: 500_000_000_000n, transaction: 10n * 10n ** 18n };

/** 20 gwei, far above the fee on Base, and 0.005 ether. */
const OF_BASE: FeeLimits = { unit: 20_000_000_000n, transaction: 5n * 10n ** 15n };

const KNOWN: Readonly<Record<number, FeeLimits>> = {
  4217: OF_TEMPO,
  8453: OF_BASE,
  42431: OF_TEMPO,
  84532: OF_BASE,
};

/** Returns the default limits of a chain. A chain that is not known has those of Base. */
export const feeLimitsOf = (chainId: number): FeeLimits => KNOWN[chainId] ?? OF_BASE;
