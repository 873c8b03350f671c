import { toHex, type Hex } from 'viem';
import { mnemonicToAccount, type HDAccount } from 'viem/accounts';

/** anvil's own, which everybody knows. */
const MNEMONIC = 'test test test test test test test test test test test junk';

/** So many of its accounts have money from the beginning. */
export const FUNDED = 10;

/** One of anvil's accounts. */
export const anvilAccount = (addressIndex: number): HDAccount =>
  mnemonicToAccount(MNEMONIC, { addressIndex });

/** Its address in lower case, and what signs for it. */
export function anvilKey(addressIndex: number): {
  readonly address: Hex;
  readonly privateKey: Hex;
} {
  const account = anvilAccount(addressIndex);
  const { privateKey } = account.getHdKey();
  if (!privateKey) throw new TypeError('An account of a mnemonic has its key');
  return { address: account.address.toLowerCase() as Hex, privateKey: toHex(privateKey) };
}
