import { randomBytes } from 'node:crypto';
import type { Hex } from 'viem';
import type { Database, TenantTransaction } from '../../../platform/database/database.js';
import { tokenHash } from '../../../platform/secrets/token-hash.js';
import type { FarcasterIdentity } from './quick-auth.js';

/** Maximum number of token chains that are kept for each account; one more evicts the oldest. */
const MAX_CHAINS = 20;

/** Characters of a token's prefix: 18 bytes for all tokens of a proof, before 30 bytes of each token. */
const NAME_LENGTH = 24;
const FORM = /^[\w-]{64}$/;

/** A new token in plain text; later only its hash is stored. */
export interface FarcasterToken {
  readonly token: string;
  readonly expiresAt: Date;
}

/**
 * The platform's tokens for proven Farcaster accounts. A token is valid for an hour and can be exchanged
 * for a new token until 30 days after the proof. All tokens of a proof share one row, which stores only
 * the latest hash. Reuse of an exchanged token means theft and deletes the row.
 */
export class FarcasterTokens {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async issue({ address, fid }: FarcasterIdentity): Promise<FarcasterToken> {
    const token = newPart(18) + newPart(30);
    return this.#database.asPlatform().transaction(async (db) => {
      await db.lock(`farcaster ${fid}`);
      const [made] = await db.query<{ expiresAt: Date }>(
        `INSERT INTO farcaster_tokens
           (id, token_hash, fid, address, created_at, expires_at, ends_at)
         VALUES ($id, $hash, $fid, $address, now(), now() + interval '1 hour',
                 now() + interval '30 days')
         RETURNING expires_at AS "expiresAt"`,
        { id: nameOf(token), hash: tokenHash(token), fid, address: address ?? null },
      );
      if (!made) throw new TypeError('no token was stored: the insert returned no row');
      await db.query(
        `DELETE FROM farcaster_tokens WHERE id IN (
           SELECT id FROM farcaster_tokens WHERE fid = $fid
           ORDER BY created_at DESC, id OFFSET ${MAX_CHAINS})`,
        { fid },
      );
      return { token, expiresAt: made.expiresAt };
    });
  }

  /** Finds the account of a token. An already exchanged token ends its whole chain. */
  async find(token: string): Promise<FarcasterIdentity | undefined> {
    if (!FORM.test(token)) return undefined;
    return this.#database.asPlatform().transaction(async (db) => {
      const [found] = await db.query<Found>(
        `SELECT fid, address FROM farcaster_tokens
          WHERE id = $id AND token_hash = $hash AND expires_at > now()`,
        { id: nameOf(token), hash: tokenHash(token) },
      );
      if (found) return holderOf(found);
      await endIfUsedTwice(db, token);
      return undefined;
    });
  }

  /** Exchanges a token for a new one. @returns undefined if the token is invalid or expired. */
  async refresh(token: string): Promise<FarcasterToken | undefined> {
    if (!FORM.test(token)) return undefined;
    const next = token.slice(0, NAME_LENGTH) + newPart(30);
    return this.#database.asPlatform().transaction(async (db) => {
      const [changed] = await db.query<{ expiresAt: Date }>(
        `UPDATE farcaster_tokens
            SET token_hash = $next, expires_at = least(now() + interval '1 hour', ends_at)
          WHERE id = $id AND token_hash = $hash AND expires_at > now()
          RETURNING expires_at AS "expiresAt"`,
        { id: nameOf(token), hash: tokenHash(token), next: tokenHash(next) },
      );
      if (changed) return { token: next, expiresAt: changed.expiresAt };
      await endIfUsedTwice(db, token);
      return undefined;
    });
  }
}

interface Found {
  readonly fid: string;
  readonly address: Hex | null;
}

const holderOf = ({ address, fid }: Found): FarcasterIdentity => ({
  fid: Number(fid),
  address: address ?? undefined,
});

/** Ends the chain of a replayed token: the prefix cannot be guessed, so the caller held one of its tokens. */
async function endIfUsedTwice(db: TenantTransaction, token: string): Promise<void> {
  await db.query('DELETE FROM farcaster_tokens WHERE id = $id AND token_hash <> $hash', {
    id: nameOf(token),
    hash: tokenHash(token),
  });
}

const nameOf = (token: string) => tokenHash(token.slice(0, NAME_LENGTH));
const newPart = (bytes: number) => randomBytes(bytes).toString('base64url');
