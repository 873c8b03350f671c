import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const WRAPPED_KEY_BYTES = IV_BYTES + KEY_BYTES + TAG_BYTES;

/** Tells how a secret was sealed, so that a later way can live beside this one. */
const VERSION = 'v1.';

/** A sealed secret was changed, belongs to another context, or was sealed under another key. */
export class SecretUnreadableError extends Error {
  constructor(options?: ErrorOptions) {
    super('A sealed secret cannot be opened', options);
    this.name = 'SecretUnreadableError';
  }
}

/**
 * Seals secrets for storage: each under a data key of its own, which is wrapped by the encryption
 * key. The context (such as a row's id and column) is authenticated with both, so that a sealed
 * secret that is moved elsewhere does not open.
 */
export class SecretBox {
  readonly #encryptionKey: Buffer;

  constructor(encryptionKey: Buffer) {
    this.#encryptionKey = encryptionKey;
    if (encryptionKey.length !== KEY_BYTES) {
      throw new RangeError(`The encryption key must have ${KEY_BYTES} bytes`);
    }
  }

  /** Seals text as text. Sealing the same twice gives two different results. */
  seal(plaintext: string, context: string): string {
    const dataKey = randomBytes(KEY_BYTES);
    const wrappedKey = encrypt(this.#encryptionKey, dataKey, context);
    const body = encrypt(dataKey, Buffer.from(plaintext, 'utf8'), context);
    return VERSION + Buffer.concat([wrappedKey, body]).toString('base64url');
  }

  /** @throws SecretUnreadableError unless sealed by this key, for this context, and unchanged. */
  open(sealed: string, context: string): string {
    if (!sealed.startsWith(VERSION)) throw new SecretUnreadableError();
    const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
    const dataKey = decrypt(this.#encryptionKey, bytes.subarray(0, WRAPPED_KEY_BYTES), context);
    return decrypt(dataKey, bytes.subarray(WRAPPED_KEY_BYTES), context).toString('utf8');
  }

  /**
   * A digest by which a secret is recognized: the same for the same text and context, and of no use
   * for guessing the text without the encryption key.
   */
  digest(text: string, context: string): string {
    const key = hkdfSync('sha256', this.#encryptionKey, '', `digest/${context}`, KEY_BYTES);
    return createHmac('sha256', Buffer.from(key)).update(text).digest('hex');
  }
}

/** Answers initialization vector, ciphertext and tag in one piece. */
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
