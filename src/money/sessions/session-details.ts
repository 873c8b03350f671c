import type { Statements } from '../../platform/database/database.js';
import { selectFrom, type RowOf } from '../../platform/database/schema/table.js';
import { paymentVouchers } from '../../platform/database/tables/payment-vouchers.js';

export type VoucherRow = RowOf<typeof paymentVouchers>;

/** Maximum number of vouchers shown for each session: between two settlements there may be thousands. */
const MAX_SHOWN = 1_000;

/** Stored details of several sessions beyond their rows. */
export interface SessionDetails {
  /** Vouchers not yet settled on chain: the latest of each session, sorted oldest first. */
  readonly pending: readonly VoucherRow[];
  /** Time of the last settlement by session row; sessions without a settlement are missing. */
  readonly lastSettledAt: ReadonlyMap<string, Date>;
}

/** A page of a session's vouchers that are not yet settled on chain, oldest first. */
export interface PendingVouchers {
  readonly items: readonly VoucherRow[];
  /** Sequence of the last item; undefined on the last page. */
  readonly next: string | undefined;
}

export async function pendingVouchers(
  db: Statements,
  session: { readonly id: string },
  after = '0',
): Promise<PendingVouchers> {
  // One extra row shows whether there is a next page.
  const found = await db.query<VoucherRow>(
    `${selectFrom(paymentVouchers)} WHERE session_id = $id AND sequence > $after
        AND cumulative > (SELECT settled FROM payment_sessions WHERE id = $id)
      ORDER BY sequence LIMIT ${MAX_SHOWN + 1}`,
    { id: session.id, after },
  );
  const items = found.slice(0, MAX_SHOWN);
  return { items, next: found.length > MAX_SHOWN ? items.at(-1)?.sequence : undefined };
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
