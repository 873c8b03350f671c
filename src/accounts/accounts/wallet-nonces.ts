import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Database } from '../../platform/database/database.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';

export const NONCE_LIFETIME_MS = 10 * 60_000;

const CONTEXT = 'wallet-nonce';

/** 128 random bits, the expiry in seconds, and half of the digest of both. */
const FORM = /^([\da-f]{32}[\da-f]{8})([\da-f]{32})$/;
const DIGEST_LENGTH = 32;

export interface Nonce {
  /** Letters and digits only, as EIP-4361 requires. */
  readonly nonce: string;
  readonly expiresAt: Date;
}

/** Nonces that make a signature valid once. Each authenticates itself, so only used ones are stored. */
export class WalletNonces {
  readonly #database: Database;
  readonly #secrets: SecretBox;

  constructor(database: Database, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
  }

  issue(now = Date.now()): Nonce {
    const seconds = Math.floor((now + NONCE_LIFETIME_MS) / 1_000);
    const text = randomBytes(16).toString('hex') + seconds.toString(16).padStart(8, '0');
    return {
      nonce: text + this.#secrets.digest(text, CONTEXT).slice(0, DIGEST_LENGTH),
      expiresAt: new Date(seconds * 1_000),
    };
  }

  /** Reports whether this platform issued the nonce and it has not expired, used or not. */
  isAuthentic(nonce: string, now = Date.now()): boolean {
    const [, text = '', digest = ''] = FORM.exec(nonce) ?? [];
    if (text === '' || expiryOf(text).getTime() <= now) return false;
    return this.#secrets
      .digests(text, CONTEXT)
      .some((each) =>
        timingSafeEqual(Buffer.from(each.slice(0, DIGEST_LENGTH)), Buffer.from(digest)),
      );
  }

  /** Uses up a nonce of this platform. @returns false if any process has used the nonce before. */
  async use(nonce: string): Promise<boolean> {
    const used = await this.#database.asPlatform().query(
      `INSERT INTO used_nonces (id, expires_at) VALUES ($id, $expiresAt)
       ON CONFLICT DO NOTHING RETURNING id`,
      { id: tokenHash(nonce), expiresAt: expiryOf(nonce) },
    );
    return used.length === 1;
  }
}

const expiryOf = (nonce: string) => new Date(parseInt(nonce.slice(32, 40), 16) * 1_000);
