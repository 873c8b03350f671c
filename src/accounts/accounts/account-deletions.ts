import { violates } from '../../platform/database/constraints.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { AccountDeletionRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { AccountDeletion } from '../../platform/database/tables/accounts.js';
import { BadRequestError, NotFoundError, UnauthorizedError } from '../../lib/errors.js';
import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import { normalizeEmail } from './email.js';

/** Rows deleted in one transaction. */
const BATCH = 1_000;

export type DeletedAccount = Pick<AccountDeletionRow, 'userId' | 'requestId' | 'requestedAt'>;

/** A part of the product that holds account data outside rows referring to the account. */
export interface AccountCleanup {
  readonly name: string;
  /** Removes the area's data; called until done, and once more. @throws CleanupPendingError while in flight */
  release(account: DeletedAccount): Promise<void>;
}

/** Account data that still exists while its removal is in flight. */
export class CleanupPendingError extends Error {
  override readonly name = 'CleanupPendingError';
}

/** Reports whether the database refused a write because its account is being deleted. */
export const isOfDeletedAccount = (error: unknown): boolean => violates(error, 'account_is_there');

/** Reports whether an account's deletion is requested; stable only under a lock on the user's row. */
export async function isBeingDeleted(db: TenantTransaction, userId: string): Promise<boolean> {
  const sql = 'SELECT FROM account_deletions WHERE user_id = $userId';
  return (await db.query(sql, { userId })).length > 0;
}

/**
 * Closes an account immediately and permanently, idempotently: ends its sessions and API keys and blocks
 * sign-in. `confirmed` is its own address, in any case. The request outlasts this process.
 * @throws BadRequestError for another address.
 */
export async function requestAccountDeletion(
  database: Database,
  userId: string,
  confirmed: string,
  origin: RequestOrigin,
): Promise<void> {
  await database.asUser(userId).transaction(async (db) => {
    // The row lock orders this against sign-ins and inserts for the account: each commits before it or is
    // refused after it.
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

/** The activities of an account deletion workflow. Every method is idempotent. */
export class AccountDeletions {
  readonly #database: Database;
  readonly #areas: ReadonlyMap<string, AccountCleanup>;

  constructor(database: Database, areas: readonly AccountCleanup[]) {
    this.#database = database;
    this.#areas = new Map(areas.map((area) => [area.name, area]));
  }

  /** Lists the areas in removal order. */
  get areas(): readonly string[] {
    return [...this.#areas.keys()];
  }

  /**
   * Removes an account's data from one area, if its deletion is requested.
   * @throws CleanupPendingError while some of the data remains, NotFoundError for an unknown area.
   */
  async leave(name: string, userId: string): Promise<void> {
    const area = this.#areas.get(name);
    if (!area) throw new NotFoundError(`No area is named ${name}`);
    const [account] = await this.#database
      .asUser(userId)
      .query<AccountDeletionRow>(`${selectFrom(AccountDeletion)} WHERE user_id = $userId`, {
        userId,
      });
    if (account) await area.release(account);
  }

  /** Erases the rest of the account. Usage, ledger and audit log keep its id. */
  async erase(userId: string): Promise<void> {
    for (let done = 1; done > 0;) {
      const [row] = await this.#database.call<{ done: number }>(ERASE, [userId, BATCH]);
      done = row?.done ?? 0;
    }
  }
}

const ERASE = { name: 'erase_account', text: 'SELECT erase_account($1, $2) AS done' };
