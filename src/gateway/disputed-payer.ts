import { PaymentRequiredError } from '../lib/errors.js';
import { debtOf } from '../money/ledger/ledger.js';
import type { Statements } from '../platform/database/database.js';

const STANDING = `
  SELECT EXISTS (SELECT FROM checkouts WHERE user_id = $userId AND is_disputed)
      OR EXISTS (SELECT FROM ledger_accounts
                  WHERE name = $debt AND currency = 'usd' AND balance < 0) AS "isStopped"`;

/** Throws PaymentRequiredError while a payment of the user is disputed, or a debt is unpaid. */
export async function requireUndisputed(db: Statements, userId: string): Promise<void> {
  const [row] = await db.query<{ isStopped: boolean }>(STANDING, { userId, debt: debtOf(userId) });
  if (row?.isStopped !== true) return;
  throw new PaymentRequiredError(
    'A payment of yours is disputed, or you owe credits: end the dispute, or buy credits',
    'CREDITS_DISPUTED',
  );
}
