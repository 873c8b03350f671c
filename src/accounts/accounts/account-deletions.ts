import { violates } from '../../platform/database/constraints.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { AccountDeletionRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { AccountDeletion } from '../../platform/database/tables/accounts.js';
import { BadRequestError, NotFoundError, UnauthorizedError } from '../../lib/errors.js';
import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import { normalizeEmail } from './email.js';

/** Rows of one transaction. */
const BATCH = 1_000;

/** An account that its owner deletes. */
export type LeavingAccount = Pick<AccountDeletionRow, 'userId' | 'requestId' | 'requestedAt'>;

/** A part of the product that has something of an account beside rows that refer to it. */
export interface AccountArea {
  readonly name: string;
  /**
   * Takes it away, or has it taken away. Is asked again until it is gone, and after that too.
   *
   * @throws StillThereError while others are about it.
   */
  leave(account: LeavingAccount): Promise<void>;
}

/** Something of an account is still there, and is being taken away. */
export class StillThereError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StillThereError';
  }
}

/** Whether the database refuses something because the account that it is for is being deleted. */
export const isOfDeletedAccount = (error: unknown): boolean => violates(error, 'account_is_there');

/** Whether its owner deletes an account; for who holds its row, so that it stays as it is said. */
export async function isBeingDeleted(db: TenantTransaction, userId: string): Promise<boolean> {
  const sql = 'SELECT FROM account_deletions WHERE user_id = $userId';
  return (await db.query(sql, { userId })).length > 0;
}

/**
 * Closes an account at once, for good: its sessions and keys end, and nobody signs in to it any more.
 * What is asked for here happens, whatever becomes of this process; again it is the same.
 *
 * @param confirmed the account's own address, in any case of letters.
 * @throws BadRequestError for another address.
 */
export async function requestAccountDeletion(
  database: Database,
  userId: string,
  confirmed: string,
  origin: RequestOrigin,
): Promise<void> {
  await database.asUser(userId).transaction(async (db) => {
    // Whoever is signing in, or making something for it, has done so before, or is refused after.
    const [user] = await db.query<{ email: string }>(
      'SELECT email FROM users WHERE id = $userId FOR UPDATE',
      { userId },
    );
    if (!user) throw new UnauthorizedError();
    if (normalizeEmail(confirmed) !== user.email) {
      throw new BadRequestError('confirm must be the address of your account');
    }
    const { requestId } = origin;
    await db.AccountDeletion.bulkCreate([{ userId, requestId }], { ignoreDuplicates: true });
    await db.Session.destroy({ where: { userId } });
    await db.ApiKey.destroy({ where: { userId } });
    await recordAudit(db, ofUser(userId, 'account.delete', origin));
  });
}

/** What the run of a deletion does. Every method may be called again with the same arguments. */
export class AccountDeletions {
  readonly #database: Database;
  readonly #areas: ReadonlyMap<string, AccountArea>;

  constructor(database: Database, areas: readonly AccountArea[]) {
    this.#database = database;
    this.#areas = new Map(areas.map((area) => [area.name, area]));
  }

  /** In the order in which they are to be asked. */
  get areas(): readonly string[] {
    return [...this.#areas.keys()];
  }

  /**
   * Has an area leave the account. One whose owner does not delete it, or that is erased, stays as it is.
   *
   * @throws StillThereError while something of it is left.
   * @throws NotFoundError when there is no such area.
   */
  async leave(name: string, userId: string): Promise<void> {
    const area = this.#areas.get(name);
    if (!area) throw new NotFoundError(`No area is called ${name}`);
    const [account] = await this.#database
      .asUser(userId)
      .query<AccountDeletionRow>(`${selectFrom(AccountDeletion)} WHERE user_id = $userId`, {
        userId,
      });
    if (account) await area.leave(account);
  }

  /** Erases what is left of the account. Usage, ledger and audit log keep its id. */
  async erase(userId: string): Promise<void> {
    for (let done = 1; done > 0;) {
      const [row] = await this.#database.call<{ done: number }>(ERASE, [userId, BATCH]);
      done = row?.done ?? 0;
    }
  }
}

const ERASE = { name: 'erase_account', text: 'SELECT erase_account($1, $2) AS done' };
