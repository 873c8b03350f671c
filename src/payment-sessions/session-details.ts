import type { Statements } from '../database/database.js';
import { selectFrom, type RowOf } from '../database/table.js';
import { PaymentVoucher } from '../database/tables/payment-vouchers.js';

export type VoucherRow = RowOf<typeof PaymentVoucher>;

/** As many are shown: what a session delivers between two settlements may be thousands. */
const MAX_SHOWN = 1_000;

/** What is stored of sessions beside their rows, of several at once. */
export interface SessionDetails {
  /** What is not settled on chain yet, the latest of it, each session's oldest first. */
  readonly pending: readonly VoucherRow[];
  /** When something was last settled, by the session's row, for those of which something was. */
  readonly lastSettledAt: ReadonlyMap<string, Date>;
}

export async function detailsOf(
  db: Statements,
  sessions: readonly { readonly id: string }[],
): Promise<SessionDetails> {
  const ids = sessions.map(({ id }) => id);
  const [latest, settled] = await Promise.all([
    db.query<VoucherRow>(
      `${selectFrom(PaymentVoucher)} WHERE session_id = ANY ($ids) AND cumulative >
          (SELECT settled FROM payment_sessions WHERE id = session_id)
        ORDER BY session_id, sequence DESC LIMIT ${MAX_SHOWN}`,
      { ids },
    ),
    db.query<{ id: string; at: Date }>(
      `SELECT session_id AS id, max(ended_at) AS at FROM payment_settlements
        WHERE session_id = ANY ($ids) AND state = 'confirmed' GROUP BY session_id`,
      { ids },
    ),
  ]);
  return {
    pending: latest.reverse(),
    lastSettledAt: new Map(settled.map(({ at, id }) => [id, at])),
  };
}
