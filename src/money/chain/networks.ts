/** Chains by what their wallets call them. */
const NAMES: Readonly<Record<number, string>> = {
  4217: 'tempo',
  8453: 'base',
  42431: 'tempo-testnet',
  84532: 'base-sepolia',
};

/** The name of a chain; one that we do not know is called as CAIP-2 has it. */
export const networkName = (chainId: number): string => NAMES[chainId] ?? `eip155:${chainId}`;

/** What people call the chain that payments are made on. */
export const chainTitle = (testnet: boolean): string => (testnet ? 'Tempo Testnet' : 'Tempo');
