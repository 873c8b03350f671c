import { formatAmount } from '../../types/money.js';
import type { LedgerCheck } from './ledger-check.js';

/** Maximum number of differences that each statement names. */
const NAMED = 20;

/** Payment sessions compared in one statement. */
const PAGE = 200;

/**
 * Condition for transfers whose payment must still be stored. Payments stay for at least 90 days after their
 * end, and a payout may be booked some days later.
 */
const HAS_PAYMENT = `t.created_at > now() - interval '60 days'`;

/** Makes a check from a statement whose rows are `cause` and `fault`; a null fault means no difference. */
function namesFaults(faults: string): LedgerCheck {
  return async function* ({ platform }) {
    const found = await platform.query<{ cause: string; fault: string; total: number }>(
      `SELECT cause, fault, count(*) OVER ()::integer AS total FROM (${faults}) AS f
        WHERE fault IS NOT NULL ORDER BY cause, fault LIMIT ${NAMED}`,
    );
    const more = (found[0]?.total ?? 0) - found.length;
    yield [
      ...found.map(({ cause, fault }) => `${cause} ${fault}`),
      ...(more > 0 ? [`and ${more} more of these`] : []),
    ];
  };
}

/**
 * Checks that every confirmed payout of a split has a confirmed payment and a ledger transfer, and the
 * reverse. If an account removal deleted the split, its payment row remains for a while.
 */
export const payoutsArePaid = namesFaults(
  `SELECT 'payout:' || p.split_id || ':' || p.position AS cause,
          CASE WHEN paid.state IS DISTINCT FROM 'confirmed' AND (paid.id IS NOT NULL OR t.id IS NULL OR ${HAS_PAYMENT})
                 THEN 'has no confirmed payment'
               WHEN paid.id IS NOT NULL AND p.transaction IS DISTINCT FROM paid.hash
                 THEN 'has another transaction than its payment'
               WHEN t.id IS NULL THEN 'is paid, and not in the ledger'
               WHEN (t.amount, t.debit, t.credit, t.currency)
                    <> (p.amount, 'wallet:' || s.from_address, 'external', 'usdc:' || s.chain_id)
                 THEN 'is another transfer in the ledger' END AS fault
     FROM royalty_payouts p
     JOIN royalty_splits s ON s.id = p.split_id
     LEFT JOIN payments paid ON paid.cause = p.payment
     LEFT JOIN ledger_transfers t ON t.cause = 'payout:' || p.split_id || ':' || p.position
    WHERE p.status = 'confirmed'
    UNION ALL
   SELECT t.cause, 'is in the ledger, and was not paid'
     FROM ledger_transfers t
     LEFT JOIN royalty_splits s ON s.id::text = split_part(t.cause, ':', 2)
     LEFT JOIN royalty_payouts p
       ON p.split_id = s.id AND p.position::text = split_part(t.cause, ':', 3)
     LEFT JOIN (SELECT DISTINCT split_part(cause, ':', 2) AS split FROM payments
                 WHERE cause LIKE 'split:%' AND state = 'confirmed') AS made
       ON made.split = split_part(t.cause, ':', 2)
    WHERE t.cause LIKE 'payout:%'
      AND CASE WHEN s.id IS NULL THEN made.split IS NULL AND ${HAS_PAYMENT}
               ELSE p.status IS DISTINCT FROM 'confirmed' END`,
);

/**
 * Checks that the ledger has exactly the payments for clones. A payment claim remains after its clone is
 * removed.
 */
export const clonesArePaid = namesFaults(
  `SELECT 'clone:' || c.id AS cause,
          CASE WHEN t.id IS NULL THEN 'is paid, and not in the ledger'
               WHEN (t.debit, t.credit, t.currency) <> ('external', 'treasury', 'pathusd')
                 OR t.amount < c.amount
                 THEN 'is another transfer in the ledger' END AS fault
     FROM clones c LEFT JOIN ledger_transfers t ON t.cause = 'clone:' || c.id
    WHERE c.paid_at IS NOT NULL
    UNION ALL
   SELECT t.cause, 'is in the ledger, and no payment was claimed for it'
     FROM ledger_transfers t
     LEFT JOIN payment_claims c ON 'clone:' || c.clone_id = t.cause
    WHERE t.cause LIKE 'clone:%' AND c.hash IS NULL`,
);

/** Checks that the ledger has exactly the transaction fees paid by the platform's own wallet. */
export const feesAreBooked = namesFaults(
  `SELECT 'fee:' || f.hash AS cause,
          CASE WHEN t.id IS NULL THEN 'is paid, and not in the ledger'
               WHEN (t.debit, t.credit, t.currency, t.amount)
                    <> ('fees', 'external', 'pathusd', f.fee)
                 THEN 'is another transfer in the ledger' END AS fault
     FROM transactions f LEFT JOIN ledger_transfers t ON t.cause = 'fee:' || f.hash
    WHERE f.fee IS NOT NULL
    UNION ALL
   SELECT t.cause, 'is in the ledger, and no transaction has it'
     FROM ledger_transfers t
     LEFT JOIN transactions f ON 'fee:' || f.hash = t.cause AND f.fee IS NOT NULL
    WHERE t.cause LIKE 'fee:%' AND f.hash IS NULL AND ${HAS_PAYMENT}`,
);

/**
 * Checks that bought and granted credits paid for a run together, and that a referral's credits are held only
 * while the new account exists and its address is not verified.
 */
export const creditsAreWhole = namesFaults(
  `SELECT g.cause, 'is posted without the hold of bought credits, or the reverse' AS fault
     FROM ledger_holds g JOIN ledger_holds b ON b.cause = left(g.cause, -length(':granted'))
    WHERE g.cause LIKE 'gateway:%:granted' AND (g.state = 'posted') <> (b.state = 'posted')
    UNION ALL
   SELECT h.cause, CASE WHEN u.id IS NULL THEN 'is held for an account that does not exist'
                        WHEN u.email_verified_at IS NOT NULL
                          THEN 'is held, and the address is verified' END
     FROM ledger_holds h LEFT JOIN users u ON u.id = split_part(h.cause, ':', 2)
    WHERE h.cause LIKE 'unverified:%' AND h.state = 'open'`,
);

/**
 * Checks that every paid checkout is credited once and in full, that refunds and disputes are booked in the amount
 * that the checkout has, and that no user has paid more than a debt.
 */
export const checkoutsAreBooked = namesFaults(
  `SELECT 'checkout:' || c.id AS cause,
          CASE WHEN t.id IS NULL THEN 'is paid, and not in the ledger'
               WHEN (t.debit, t.credit, t.currency, t.amount)
                    <> ('processor', 'user:' || c.user_id || ':credits', 'usd', c.cents * 10000::numeric)
                 THEN 'is another transfer in the ledger' END AS fault
     FROM checkouts c LEFT JOIN ledger_transfers t ON t.cause = 'checkout:' || c.id
    WHERE c.paid_at IS NOT NULL
    UNION ALL
   SELECT t.cause, 'is in the ledger, and no checkout was paid for it'
     FROM ledger_transfers t
     LEFT JOIN checkouts c ON c.id = split_part(t.cause, ':', 2) AND c.paid_at IS NOT NULL
    WHERE t.cause ~ '^(checkout|reversal|debt):' AND c.id IS NULL
    UNION ALL
   SELECT 'reversal:' || c.id, 'is booked in another amount than its refunds and disputes'
     FROM checkouts c
     LEFT JOIN (SELECT split_part(cause, ':', 2) AS id,
                       sum(CASE WHEN credit = 'processor' THEN amount ELSE -amount END) AS amount
                  FROM ledger_transfers WHERE cause LIKE 'reversal:%' GROUP BY 1) AS booked USING (id)
    WHERE c.taken_back <> coalesce(booked.amount, 0)
    UNION ALL
   SELECT name, 'is paid beyond the debt' FROM ledger_accounts WHERE name LIKE 'debt:%' AND balance > 0`,
);

interface ComparedSession {
  readonly id: string;
  readonly deposit: string;
  readonly delivered: string;
  readonly settled: string;
  readonly remaining: string;
  readonly spent: string;
  readonly refunded: string;
  readonly paid: string;
  readonly unpaid: string;
}

/**
 * Checks that each deposit equals the sum of its remainder, the spent amount, and the amounts settled or
 * refunded.
 */
export const depositsAreWhole: LedgerCheck = async function* ({ platform }) {
  for (let after = ''; ;) {
    const page = await platform.query<ComparedSession>(
      `SELECT s.id, s.deposit::text, s.delivered::text, s.settled::text,
              coalesce(a.balance, 0)::text AS remaining, coalesce(b.balance, 0)::text AS spent,
              went.refunded::text, went.paid::text, went.unpaid::text
         FROM (SELECT id, delivered, settled, 'session:' || id AS account,
                      CASE WHEN opened_at IS NULL THEN 0 ELSE deposit END AS deposit
                 FROM payment_sessions WHERE id > $after ORDER BY id LIMIT ${PAGE}) AS s
         LEFT JOIN ledger_accounts a ON a.name = s.account AND a.currency = 'pathusd'
         LEFT JOIN ledger_accounts b ON b.name = s.account || ':spent' AND b.currency = 'pathusd'
        CROSS JOIN LATERAL
          (SELECT coalesce(sum(t.amount) FILTER (WHERE t.debit = s.account), 0) AS refunded,
                  coalesce(sum(t.amount) FILTER (WHERE t.debit <> s.account
                                                   AND t.credit = 'treasury'), 0) AS paid,
                  coalesce(sum(t.amount) FILTER (WHERE t.debit <> s.account
                                                   AND t.credit = 'external'), 0) AS unpaid
             FROM ledger_transfers t
            WHERE t.currency = 'pathusd' AND t.debit IN (s.account, s.account || ':spent')
              AND t.credit IN ('external', 'treasury')) AS went
        ORDER BY s.id`,
      { after },
    );
    yield page.flatMap(differencesOf);
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = last.id;
  }
};

function differencesOf({ id, ...of }: ComparedSession): string[] {
  const delivered = BigInt(of.delivered);
  const remaining = BigInt(of.deposit) - delivered - BigInt(of.refunded);
  const spent = delivered - BigInt(of.paid) - BigInt(of.unpaid);
  const compared = [
    ['is', BigInt(of.remaining), 'the remainder of its deposit is', remaining],
    ['has spent', BigInt(of.spent), 'the delivered but unsettled amount is', spent],
    ['has settled', BigInt(of.settled), 'the treasury has received', BigInt(of.paid)],
  ] as const;
  return compared.flatMap(([what, is, other, sum]) =>
    is === sum
      ? []
      : [`session:${id} ${what} ${formatAmount(is)} pathusd, ${other} ${formatAmount(sum)}`],
  );
}
