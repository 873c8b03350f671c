import { randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { requireOpenCredential, type AddingCredential } from '../../platform/audit/added-by.js';
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

export const MAX_IMPORTED = 20;

export interface UserWallet {
  /** Address in lower case. */
  readonly address: Hex;
  readonly createdAt: Date;
}

/** A requester who works with their own wallets. */
export type WalletOwner = Requester & {
  readonly userId: string;
  readonly credential?: AddingCredential | undefined;
};

interface Parts {
  readonly secrets: SecretBox;
  readonly provider: WalletProvider;
}

/** Wallets of users: one created here, one at the wallet provider, and those imported. */
export class UserWallets {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Returns the wallet that was created here. */
  async find(tenant: TenantDatabase, userId: string): Promise<UserWallet | undefined> {
    const [wallet] = await tenant.query<UserWallet>(
      `SELECT address, created_at AS "createdAt" FROM wallets
        WHERE user_id = $userId AND kind = 'user' AND suspended_at IS NULL`,
      { userId },
    );
    return wallet;
  }

  /**
   * Returns the address of the wallet created here, else of the wallet at the provider, else of the first
   * imported one.
   */
  async firstAddress(tenant: TenantDatabase, userId: string): Promise<Hex | undefined> {
    const [wallet] = await tenant.query<{ address: Hex }>(
      `SELECT address FROM wallets WHERE user_id = $userId AND kind <> 'agent' AND suspended_at IS NULL
        ORDER BY array_position(ARRAY['user', 'provider', 'imported'], kind), created_at, id LIMIT 1`,
      { userId },
    );
    return wallet?.address;
  }

  /** Creates the user's wallet here; a retry returns it. @throws BadRequestError if the user has another. */
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
   * Stores a key that a user imports, or a new key. Importing the key again, or retrying the request,
   * returns the same wallet. @throws BadRequestError, without the key, for an invalid key or beyond
   * `MAX_IMPORTED`.
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
    // An imported key identifies its wallet; a new key does not, so the idempotency id does.
    const id = key === undefined ? by.idempotencyId : randomUUID();
    return by.tenant.transaction(async (db) => {
      // The lock keeps two concurrent imports from exceeding the limit.
      await db.lock(`imported-wallets:${userId}`);
      const imported = await db.Wallet.findAll({
        attributes: ['id', 'address'],
        where: { userId, kind: 'imported' },
      });
      const known = imported.find((each) => each.id === id || each.address === sealed.address);
      if (known) return known.address as Hex; // addresses are stored as `Hex`
      if (imported.length >= MAX_IMPORTED) {
        throw new BadRequestError('Too many wallets', 'WALLET_LIMIT_REACHED', {
          limit: MAX_IMPORTED,
        });
      }
      await addWallet(db, by, 'imported', { ...sealed, id, brought: key !== undefined });
      return sealed.address;
    });
  }

  /**
   * Creates a user's wallet at the provider; a repeated request returns the same wallet. @throws
   * BadRequestError unless the user's mail address is verified, because the mailbox opens the wallet;
   * WalletProviderError
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
      // A concurrent request has created the same wallet.
      if (!violates(error, 'wallets_provider_key')) throw error;
    }
    return { address, walletId };
  }
}

async function addWallet(
  db: TenantTransaction,
  { actor, credential, requestId, userId }: WalletOwner,
  kind: WalletKind,
  wallet: Pick<WalletRow, 'id' | 'sealedKey'> &
    Partial<Pick<WalletRow, 'brought'>> & { readonly address: Hex },
): Promise<void> {
  // A request in flight adds nothing after an event has ended its credential.
  const addedBy = credential ? await requireOpenCredential(db, userId, credential) : null;
  await db.Wallet.create({ userId, kind, addedBy, ...wallet });
  const record = { actor, userId, requestId, action: 'wallet.create', subject: wallet.address };
  await recordAudit(db, { ...record, detail: { kind } });
}
