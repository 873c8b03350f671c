import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { SecretBox } from '../../platform/secrets/secret-box.js';

/** Context that binds a sealed key to its owner and address, so that it opens in no other row. */
export const keyContext = (userId: string, address: string): string =>
  `wallet/${userId}/${address}`;

/** Order of the curve secp256k1; valid keys are below it. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * Parses a private key, without an error that could reveal it.
 *
 * @returns undefined for anything but 32 bytes in hex within the curve's range.
 */
export function parsePrivateKey(text: string): Hex | undefined {
  if (!/^0x[\da-f]{64}$/i.test(text)) return undefined;
  const value = BigInt(text);
  return value > 0n && value < ORDER ? (text.toLowerCase() as Hex) : undefined;
}

export interface SealedKey {
  /** Address in lower case. */
  readonly address: Hex;
  readonly sealedKey: string;
}

/**
 * Seals a private key.
 *
 * @param privateKey a result of `parsePrivateKey`; if missing, a new key is generated.
 */
export function sealKey(
  box: SecretBox,
  userId: string,
  privateKey: Hex = generatePrivateKey(),
): SealedKey {
  const address = privateKeyToAddress(privateKey).toLowerCase() as Hex;
  return { address, sealedKey: box.seal(privateKey, keyContext(userId, address)) };
}
