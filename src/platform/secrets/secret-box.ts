import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { ONLY_KEY, type KeyRing } from './key-ring.js';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const WRAPPED_KEY_BYTES = IV_BYTES + KEY_BYTES + TAG_BYTES;

/**
 * Version and key id in the prefix of a sealed secret, `v1.<key's id>.<base64url>`, so that formats can
 * coexist. Secrets without a key id were sealed before keys had ids.
 */
const VERSION = 'v1';
const SEALED = /^v1\.(?:([a-zA-Z0-9-]+)\.)?([\w-]+)$/;

/** A sealed secret was changed, belongs to another context, or was sealed under another key. */
export class SecretUnreadableError extends Error {
  override readonly name = 'SecretUnreadableError';

  constructor(options?: ErrorOptions) {
    super('A sealed secret cannot be opened: check the encryption keys', options);
  }
}

/**
 * Seals secrets for storage. Each has a data key of its own, encrypted with the first key of the ring. Both
 * authenticate the context (such as a row's id and column), so a secret copied elsewhere does not open.
 */
export class SecretBox {
  readonly #ring: KeyRing;
  readonly #digestKeys: readonly Buffer[];

  constructor(ring: KeyRing) {
    this.#ring = ring;
    if (ring.some(({ key }) => key.length !== KEY_BYTES)) {
      throw new RangeError(`An encryption key must have ${KEY_BYTES} bytes`);
    }
    this.#digestKeys = ring.map(({ key }) =>
      Buffer.from(hkdfSync('sha256', key, '', 'digest', KEY_BYTES)),
    );
  }

  /** Prefix of secrets sealed under the current key. */
  get prefix(): string {
    return `${VERSION}.${this.#ring[0].id}.`;
  }

  /** Seals a text. Sealing the same text twice gives different results. */
  seal(plaintext: string, context: string): string {
    const dataKey = randomBytes(KEY_BYTES);
    return this.#sealed(
      dataKey,
      encrypt(dataKey, Buffer.from(plaintext, 'utf8'), context),
      context,
    );
  }

  /** Opens a secret. @throws SecretUnreadableError unless unchanged, of this context, and of a ring's key */
  open(sealed: string, context: string): string {
    const { dataKey, body } = this.#unwrap(sealed, context);
    return decrypt(dataKey, body, context).toString('utf8');
  }

  /** Seals the secret again under the current key. @throws SecretUnreadableError */
  rewrap(sealed: string, context: string): string {
    const { dataKey, body } = this.#unwrap(sealed, context);
    return this.#sealed(dataKey, body, context);
  }

  /** Returns a keyed digest, equal for equal text and context; without the key, the text cannot be guessed. */
  digest(text: string, context: string): string {
    return this.digests(text, context)[0];
  }

  /** Returns the digest under each key of the ring, first under the current key. */
  digests(text: string, context: string): [string, ...string[]] {
    const message = JSON.stringify([context, text]);
    const [first = '', ...others] = this.#digestKeys.map((key) =>
      createHmac('sha256', key).update(message).digest('hex'),
    );
    return [first, ...others];
  }

  #sealed(dataKey: Buffer, body: Buffer, context: string): string {
    const wrappedKey = encrypt(this.#ring[0].key, dataKey, context);
    return this.prefix + Buffer.concat([wrappedKey, body]).toString('base64url');
  }

  #unwrap(sealed: string, context: string): { dataKey: Buffer; body: Buffer } {
    const [, id = ONLY_KEY, text = ''] = SEALED.exec(sealed) ?? [];
    const named = this.#ring.find((each) => each.id === id);
    if (named === undefined) throw new SecretUnreadableError();
    const bytes = Buffer.from(text, 'base64url');
    const dataKey = decrypt(named.key, bytes.subarray(0, WRAPPED_KEY_BYTES), context);
    return { dataKey, body: bytes.subarray(WRAPPED_KEY_BYTES) };
  }
}

/** Returns initialization vector, ciphertext and tag in one buffer. */
function encrypt(key: Buffer, plaintext: Buffer, context: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context, 'utf8'));
  return Buffer.concat([iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Buffer, sealed: Buffer, context: string): Buffer {
  if (sealed.length < IV_BYTES + TAG_BYTES) throw new SecretUnreadableError();
  const iv = sealed.subarray(0, IV_BYTES);
  const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context, 'utf8'));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  const plaintext = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([plaintext, decipher.final()]);
  } catch (cause) {
    throw new SecretUnreadableError({ cause });
  }
}
