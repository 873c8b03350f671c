import { pbkdf2Sync } from 'node:crypto';
import { toHex, type Hex } from 'viem';
import { HDKey, hdKeyToAccount, type HDAccount } from 'viem/accounts';

/** anvil's own mnemonic, which is public. */
const MNEMONIC = 'test test test test test test test test test test test junk';

/** The number of accounts that have money from the beginning. */
export const FUNDED = 10;

/**
 * The seed as BIP-39 derives it from the mnemonic, computed once: viem would take 2,048 rounds of
 * JavaScript for each account.
 */
const SEED = pbkdf2Sync(MNEMONIC, 'mnemonic', 2048, 64, 'sha512');

/** One of anvil's accounts. */
export const anvilAccount = (addressIndex: number): HDAccount =>
  hdKeyToAccount(HDKey.fromMasterSeed(SEED), { addressIndex });

/** Returns an account's address in lower case, and its private key. */
export function anvilKey(addressIndex: number): {
  readonly address: Hex;
  readonly privateKey: Hex;
} {
  const account = anvilAccount(addressIndex);
  const { privateKey } = account.getHdKey();
  if (!privateKey)
    throw new TypeError('An account derived from a mnemonic must have a private key');
  return { address: account.address.toLowerCase() as Hex, privateKey: toHex(privateKey) };
}
