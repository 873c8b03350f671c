import type { Statements } from '../database/database.js';
import { selectFrom, type RowOf } from '../database/table.js';
import { paymentVouchers } from '../database/tables/payment-vouchers.js';

export type VoucherRow = RowOf<typeof paymentVouchers>;

/** As many are shown of each session: what one delivers between two settlements may be thousands. */
const MAX_SHOWN = 1_000;

/** What is stored of sessions beside their rows, of several at once. */
export interface SessionDetails {
  /** What is not settled on chain yet, the latest of each session, its oldest first. */
  readonly pending: readonly VoucherRow[];
  /** When something was last settled, by the session's row, for those of which something was. */
  readonly lastSettledAt: ReadonlyMap<string, Date>;
}

export async function detailsOf(
  db: Statements,
  sessions: readonly { readonly id: string }[],
): Promise<SessionDetails> {
  const ids = sessions.map(({ id }) => id);
  const [pending, settled] = await Promise.all([
    db.query<VoucherRow>(
      `SELECT latest.* FROM payment_sessions s CROSS JOIN LATERAL
         (${selectFrom(paymentVouchers)} WHERE session_id = s.id AND cumulative > s.settled
           ORDER BY sequence DESC LIMIT ${MAX_SHOWN}) latest
        WHERE s.id = ANY ($ids) ORDER BY latest."sessionId", latest.sequence`,
      { ids },
    ),
    db.query<{ id: string; at: Date }>(
      `SELECT session_id AS id, max(ended_at) AS at FROM payment_settlements
        WHERE session_id = ANY ($ids) AND state = 'confirmed' GROUP BY session_id`,
      { ids },
    ),
  ]);
  return {
    pending,
    lastSettledAt: new Map(settled.map(({ at, id }) => [id, at])),
  };
}
