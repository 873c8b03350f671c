import { pbkdf2Sync } from 'node:crypto';
import { toHex, type Hex } from 'viem';
import { HDKey, hdKeyToAccount, type HDAccount } from 'viem/accounts';

/** anvil's own, which everybody knows. */
const MNEMONIC = 'test test test test test test test test test test test junk';

/** So many of its accounts have money from the beginning. */
export const FUNDED = 10;

/**
 * As BIP-39 makes it of the mnemonic, once: by viem each account would take 2,048 rounds of
 * JavaScript.
 */
const SEED = pbkdf2Sync(MNEMONIC, 'mnemonic', 2048, 64, 'sha512');

/** One of anvil's accounts. */
export const anvilAccount = (addressIndex: number): HDAccount =>
  hdKeyToAccount(HDKey.fromMasterSeed(SEED), { addressIndex });

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
