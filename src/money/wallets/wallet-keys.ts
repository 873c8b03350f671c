import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { SecretBox } from '../../platform/secrets/secret-box.js';

/** Binds a sealed key to its owner and address, so that it opens in no other row. */
export const keyContext = (userId: string, address: string): string =>
  `wallet/${userId}/${address}`;

/** Those of the curve secp256k1 are below it. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** @returns undefined for what is not 32 bytes in hex within the curve's range; says nothing else of it. */
export function parsePrivateKey(text: string): Hex | undefined {
  if (!/^0x[\da-f]{64}$/i.test(text)) return undefined;
  const value = BigInt(text);
  return value > 0n && value < ORDER ? (text.toLowerCase() as Hex) : undefined;
}

/** A key as it is stored. */
export interface SealedKey {
  /** In lower case. */
  readonly address: Hex;
  readonly sealedKey: string;
}

/** @param privateKey one that `parsePrivateKey` has answered; without it a new one is made. */
export function sealKey(
  box: SecretBox,
  userId: string,
  privateKey: Hex = generatePrivateKey(),
): SealedKey {
  const address = privateKeyToAddress(privateKey).toLowerCase() as Hex;
  return { address, sealedKey: box.seal(privateKey, keyContext(userId, address)) };
}
