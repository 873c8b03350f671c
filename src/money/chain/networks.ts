const NAMES: Readonly<Record<number, string>> = {
  4217: 'tempo',
  8453: 'base',
  42431: 'tempo-testnet',
  84532: 'base-sepolia',
};

/** Returns the name of a chain; for an unknown chain, its CAIP-2 id. */
export const networkName = (chainId: number): string => NAMES[chainId] ?? `eip155:${chainId}`;

/** Returns the display name of the payment chain. */
export const chainTitle = (testnet: boolean): string => (testnet ? 'Tempo Testnet' : 'Tempo');
