import { createHash } from 'node:crypto';

/** A key that wraps the keys of secrets, by the name that stands on what it has sealed. */
export interface EncryptionKey {
  readonly id: string;
  /** 32 bytes. */
  readonly key: Buffer;
}

/** The first seals, all of them open. */
export type KeyRing = readonly [EncryptionKey, ...EncryptionKey[]];

/** The id of a key that stands alone. */
export const ONLY_KEY = '1';

/** A ring of one key. */
export const ringOf = (key: Buffer): KeyRing => [{ id: ONLY_KEY, key }];

/** The name of an installation that was never given one: it does not tell the key. */
export function installationOf(encryptionKey: Buffer): string {
  return createHash('sha256')
    .update('installation')
    .update(encryptionKey)
    .digest('hex')
    .slice(0, 16);
}
