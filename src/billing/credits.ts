import { creditAccounts, creditEntries } from '../money/ledger/credit-entries.js';
import type { TenantDatabase } from '../platform/database/database.js';

/** A change of a user's credits, in base units; negative for a debit. */
export interface CreditEntry {
  readonly id: string;
  readonly amount: bigint;
  /** The kind of the transfer's cause, such as `checkout`. */
  readonly reason: string;
  /** The id of the checkout or of the run; null for a cause that names another user. */
  readonly reference: string | null;
  readonly createdAt: Date;
}

/** The page to read; `before` is the id of the entry before it. */
export interface EntriesPage {
  readonly limit: number;
  readonly before?: string | undefined;
}

interface EntryRow extends Omit<CreditEntry, 'amount'> {
  readonly amount: string;
}

/** Reasons whose causes name an id that the user may see, after the reason. */
const WITH_REFERENCE = ['checkout', 'reversal', 'gateway'];

/**
 * Lists the changes of a user's credits, newest first: bought and granted ones, and what became a debt, but no
 * movement between these accounts.
 */
export async function listCreditEntries(
  tenant: TenantDatabase,
  userId: string,
  { limit, before }: EntriesPage,
): Promise<{ items: CreditEntry[]; next: [id: string] | undefined }> {
  const entries = creditEntries('id < $before::bigint ORDER BY id DESC LIMIT $most::integer');
  const rows = await tenant.query<EntryRow>(
    `SELECT id::text, amount::text, split_part(cause, ':', 1) AS reason,
            CASE WHEN split_part(cause, ':', 1) = ANY ($withReference)
                 THEN split_part(cause, ':', 2) END AS reference,
            created_at AS "createdAt"
       FROM (${entries}) AS entries
      ORDER BY entries.id DESC LIMIT $most::integer`,
    {
      ...creditAccounts(userId),
      before: before ?? MAX_ID,
      most: limit + 1,
      withReference: WITH_REFERENCE,
    },
  );
  const items = rows.slice(0, limit).map((row) => ({ ...row, amount: BigInt(row.amount) }));
  const last = items.at(-1);
  return { items, next: rows.length > limit && last ? [last.id] : undefined };
}

/** The largest id of a transfer. */
const MAX_ID = '9223372036854775807';
