import type { Statements } from '../database/database.js';
import { selectFrom, type RowOf } from '../database/table.js';
import { PaymentVoucher } from '../database/tables/payment-vouchers.js';

export type VoucherRow = RowOf<typeof PaymentVoucher>;

/** As many are shown: what a session delivers between two settlements may be thousands. */
const MAX_SHOWN = 1_000;

/** What of sessions is not settled on chain yet, the latest of it, each session's oldest first. */
export async function pendingVouchers(
  db: Statements,
  sessions: readonly { readonly id: string }[],
): Promise<VoucherRow[]> {
  const latest = await db.query<VoucherRow>(
    `${selectFrom(PaymentVoucher)} WHERE session_id = ANY ($ids) AND cumulative >
        (SELECT settled FROM payment_sessions WHERE id = session_id)
      ORDER BY session_id, sequence DESC LIMIT ${MAX_SHOWN}`,
    { ids: sessions.map(({ id }) => id) },
  );
  return latest.reverse();
}
