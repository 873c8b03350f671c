import { randomUUID } from 'node:crypto';
import type { Database, Statements } from '../platform/database/database.js';
import { RowWatch } from '../platform/database/row-watch.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { ConflictError, UnavailableError } from '../lib/errors.js';
import type { WalletOwner } from '../money/wallets/agent-wallets.js';
import { busText, type PreparedMessage } from './bus-message.js';
import { signatureContext } from './sealed-contexts.js';

/** Milliseconds to wait for a signature. */
const SIGNING_MS = 10_000;

/** Seconds after which a caller retries. */
const RETRY_AFTER_S = 5;

/** Signatures of agents' wallets, which the process with the keys makes (`BusSigner`). */
export class BusSignatures {
  readonly #database: Database;
  readonly #secrets: SecretBox;
  readonly #watch: RowWatch<string | null>;

  constructor(database: Database, secrets: SecretBox) {
    this.#database = database;
    this.#secrets = secrets;
    this.#watch = new RowWatch(database.changesOf('bus_signatures'), (ids) =>
      signaturesOf(database, ids),
    );
  }

  /**
   * Signs a message of an agent by the wallet that the platform keeps for it.
   * @throws ConflictError without such a wallet; UnavailableError without a signature within ten seconds.
   */
  async sign(
    owner: WalletOwner,
    { canonical }: Pick<PreparedMessage, 'canonical'>,
    end: AbortSignal,
  ): Promise<string> {
    const tenant = this.#database.asUser(owner.userId);
    if (!(await hasKeptWallet(tenant, owner))) {
      throw new ConflictError(
        'The agent has no wallet whose key the platform keeps: create one by POST /api/underground/wallets, or sign with its own wallet',
        'WALLET_MISSING',
      );
    }
    const id = randomUUID();
    const sealed = this.#secrets.seal(busText(canonical), signatureContext(id));
    await tenant.query(
      `INSERT INTO bus_signatures (id, user_id, agent_id, sealed_text)
         VALUES ($id, $userId, $agentId, $sealed)`,
      { id, ...owner, sealed },
    );
    try {
      const signal = AbortSignal.any([end, AbortSignal.timeout(SIGNING_MS)]);
      const signature = await this.#watch.until(id, (state) => state !== null, signal);
      if (signature !== undefined && signature !== null) return signature;
      throw new UnavailableError('The message could not be signed in time: retry', undefined, {
        retryAfter: RETRY_AFTER_S,
      });
    } finally {
      await tenant.query('DELETE FROM bus_signatures WHERE id = $id', { id });
    }
  }
}

async function hasKeptWallet(db: Statements, { agentId, userId }: WalletOwner): Promise<boolean> {
  const found = await db.query(
    `SELECT FROM wallets WHERE agent_id = $agentId AND user_id = $userId
        AND sealed_key IS NOT NULL AND suspended_at IS NULL`,
    { agentId, userId },
  );
  return found.length > 0;
}

async function signaturesOf(
  database: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const rows = await database
    .asPlatform()
    .query<{ id: string; signature: string | null }>(
      'SELECT id, signature FROM bus_signatures WHERE id = ANY ($ids)',
      { ids },
    );
  return new Map(rows.map(({ id, signature }) => [id, signature]));
}
