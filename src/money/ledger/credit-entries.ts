import { creditsOf, debtOf, grantedOf } from './ledger.js';

/**
 * Returns a SELECT of the `id`, signed `amount`, `cause` and `created_at` of each change of a user's credits: bought
 * and granted ones, and what became a debt, but no movement between these accounts.
 *
 * @param page the condition and order of a page, on `id`. The values are those of `creditAccounts`.
 */
export function creditEntries(page: string): string {
  // Each side of a transfer has its own index, in which each account is in order.
  const side = (account: string, own: 'debit' | 'credit', other: 'debit' | 'credit') =>
    `(SELECT id, ${own === 'debit' ? '-' : ''}amount AS amount, cause, created_at
        FROM ledger_transfers
       WHERE ${own} = ${account} AND ${other} NOT IN ($credits, $granted, $debt)
         AND currency = 'usd' AND ${page})`;
  return ['$credits', '$granted', '$debt']
    .flatMap((account) => [side(account, 'debit', 'credit'), side(account, 'credit', 'debit')])
    .join(' UNION ALL ');
}

/** Returns the accounts of a user's credits and debt. */
export const creditAccounts = (userId: string) => ({
  credits: creditsOf(userId),
  granted: grantedOf(userId),
  debt: debtOf(userId),
});
