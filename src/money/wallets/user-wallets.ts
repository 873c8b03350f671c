import { randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import { violates } from '../../platform/database/constraints.js';
import type { TenantDatabase, TenantTransaction } from '../../platform/database/database.js';
import type { WalletRow } from '../../platform/database/models.js';
import type { WalletKind } from '../../platform/database/tables/wallets.js';
import { BadRequestError } from '../../lib/errors.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import type { WalletProvider } from './provider/wallet-provider.js';
import { parsePrivateKey, sealKey } from './wallet-keys.js';

/** Keys that one user can bring. */
export const MAX_IMPORTED = 20;

/** A user's wallet as its owner sees it. */
export interface UserWallet {
  /** In lower case. */
  readonly address: Hex;
  readonly createdAt: Date;
}

/** A user who does something with wallets of their own. */
export type WalletOwner = Requester & { readonly userId: string };

interface Parts {
  readonly secrets: SecretBox;
  readonly provider: WalletProvider;
}

/** Wallets of users: one that is made here, one at the wallet provider, and those whose keys they bring. */
export class UserWallets {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The one that was made here. */
  async find(tenant: TenantDatabase, userId: string): Promise<UserWallet | undefined> {
    const [wallet] = await tenant.query<UserWallet>(
      `SELECT address, created_at AS "createdAt" FROM wallets
        WHERE user_id = $userId AND kind = 'user'`,
      { userId },
    );
    return wallet;
  }

  /** The one that was made here, or else the one at the provider, or the first that was brought. */
  async firstAddress(tenant: TenantDatabase, userId: string): Promise<Hex | undefined> {
    const [wallet] = await tenant.query<{ address: Hex }>(
      `SELECT address FROM wallets WHERE user_id = $userId AND kind <> 'agent'
        ORDER BY array_position(ARRAY['user', 'provider', 'imported'], kind), created_at, id LIMIT 1`,
      { userId },
    );
    return wallet?.address;
  }

  /**
   * The same request again is told of the same wallet.
   *
   * @throws BadRequestError when there is one already: of several at once, one is made.
   */
  async create(by: WalletOwner): Promise<Hex> {
    const { idempotencyId: id, tenant, userId } = by;
    const [known] = await tenant.query<{ readonly address: Hex }>(
      'SELECT address FROM wallets WHERE id = $id AND user_id = $userId',
      { id, userId },
    );
    if (known) return known.address;
    const made = { ...sealKey(this.#parts.secrets, userId), id };
    try {
      await tenant.transaction((db) => addWallet(db, by, 'user', made));
    } catch (error) {
      if (violates(error, 'wallets_user_key')) throw new BadRequestError('A wallet already exists');
      throw error;
    }
    return made.address;
  }

  /**
   * Keeps a key that a user brings, or a new one; brought again, or the same request again, it is the
   * same wallet.
   *
   * @param privateKey says nothing else of it where it is refused.
   * @throws BadRequestError for what is no key, or beyond `MAX_IMPORTED`.
   */
  async import(by: WalletOwner, privateKey: string | undefined): Promise<Hex> {
    const key = privateKey === undefined ? undefined : parsePrivateKey(privateKey);
    if (privateKey !== undefined && key === undefined) {
      throw new BadRequestError(
        'privateKey must be 0x and 32 bytes in hex, in the range of secp256k1',
      );
    }
    const { userId } = by;
    const sealed = sealKey(this.#parts.secrets, userId, key);
    // By a key that is brought its wallet is found again, by a new one nothing is.
    const id = key === undefined ? by.idempotencyId : randomUUID();
    return by.tenant.transaction(async (db) => {
      // Of two at the bound one is kept.
      await db.lock(`imported-wallets:${userId}`);
      const imported = await db.Wallet.findAll({
        attributes: ['id', 'address'],
        where: { userId, kind: 'imported' },
      });
      const known = imported.find((each) => each.id === id || each.address === sealed.address);
      if (known) return known.address as Hex; // as its row has it
      if (imported.length >= MAX_IMPORTED) {
        throw new BadRequestError('Too many wallets', { limit: MAX_IMPORTED });
      }
      await addWallet(db, by, 'imported', { ...sealed, id, brought: key !== undefined });
      return sealed.address;
    });
  }

  /**
   * A user's wallet at the provider. Asked for again, it is the same.
   *
   * @throws BadRequestError for an address that is not proven to be the user's: whoever has the mailbox has
   *   the wallet, and its address is nobody else's business. WalletProviderError
   */
  async createAtProvider(
    by: WalletOwner,
    email: string,
  ): Promise<{ readonly address: Hex; readonly walletId: string }> {
    const { tenant, userId } = by;
    const walletId = userId;
    const [user] = await tenant.query<{ email: string; verified: boolean; address: Hex | null }>(
      `SELECT email, email_verified_at IS NOT NULL AS verified,
              (SELECT address FROM wallets WHERE user_id = $userId AND kind = 'provider') AS address
         FROM users WHERE id = $userId`,
      { userId },
    );
    if (user?.email !== email || !user.verified) {
      throw new BadRequestError('email must be the verified address of your account');
    }
    if (user.address !== null) return { address: user.address, walletId };
    const address = await this.#parts.provider.create(walletId, email);
    try {
      const wallet = { id: randomUUID(), address, sealedKey: null };
      await tenant.transaction((db) => addWallet(db, by, 'provider', wallet));
    } catch (error) {
      // Two at once have asked for the same one.
      if (!violates(error, 'wallets_provider_key')) throw error;
    }
    return { address, walletId };
  }
}

async function addWallet(
  db: TenantTransaction,
  { actor, requestId, userId }: WalletOwner,
  kind: WalletKind,
  wallet: Pick<WalletRow, 'id' | 'sealedKey'> &
    Partial<Pick<WalletRow, 'brought'>> & { readonly address: Hex },
): Promise<void> {
  await db.Wallet.create({ userId, kind, ...wallet });
  const record = { actor, userId, requestId, action: 'wallet.create', subject: wallet.address };
  await recordAudit(db, { ...record, detail: { kind } });
}
