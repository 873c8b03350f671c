import type { Statements } from '../../platform/database/database.js';
import { selectFrom, type RowOf } from '../../platform/database/schema/table.js';
import { paymentVouchers } from '../../platform/database/tables/payment-vouchers.js';

export type VoucherRow = RowOf<typeof paymentVouchers>;

/** Most vouchers shown for each session: between two settlements there may be thousands. */
const MAX_SHOWN = 1_000;

/** Stored details of several sessions beyond their rows. */
export interface SessionDetails {
  /** Vouchers not yet settled on chain: the latest of each session, sorted oldest first. */
  readonly pending: readonly VoucherRow[];
  /** Time of the last settlement by session row; sessions without a settlement are missing. */
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
