import { createHash } from 'node:crypto';

/** A key that encrypts data keys; its id is part of every secret sealed with it. */
export interface EncryptionKey {
  readonly id: string;
  /** 32 bytes. */
  readonly key: Buffer;
}

/** Keys of which the first seals and all open. */
export type KeyRing = readonly [EncryptionKey, ...EncryptionKey[]];

export const ONLY_KEY = '1';

export const ringOf = (key: Buffer): KeyRing => [{ id: ONLY_KEY, key }];

/** Derives the default id of an installation from its key, without revealing the key. */
export function installationOf(encryptionKey: Buffer): string {
  return createHash('sha256')
    .update('installation')
    .update(encryptionKey)
    .digest('hex')
    .slice(0, 16);
}
