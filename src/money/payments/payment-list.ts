import type { Hex } from 'viem';
import type { Statements } from '../../platform/database/database.js';
import type { PaymentFailure, PaymentState, TransactionPurpose } from '../../types/payment.js';

export interface ListedTransaction {
  readonly hash: Hex;
  readonly nonce: string;
  readonly purpose: TransactionPurpose;
  /** False if another transaction has replaced it. */
  readonly active: boolean;
  readonly refused: boolean;
  readonly maxFee: string;
  readonly signedAt: string;
  readonly broadcastAt: string | null;
  readonly finalAt: string | null;
}

/** A payment as shown to operators. */
export interface ListedPayment {
  readonly id: string;
  readonly cause: string;
  readonly chainId: string;
  readonly signer: Hex;
  readonly state: PaymentState;
  readonly failure: PaymentFailure | null;
  readonly nonce: string | null;
  readonly hash: Hex | null;
  readonly block: string | null;
  readonly attempts: number;
  /** With milliseconds, the precision by which lists are sorted. */
  readonly requestedAt: Date;
  readonly settledAt: Date | null;
  /** Seconds from the request to settlement, or to now. */
  readonly age: string;
  readonly transactions: readonly ListedTransaction[];
}

export interface PaymentPage {
  readonly state: PaymentState | undefined;
  readonly limit: number;
  /** Time and id of the last payment on the previous page. */
  readonly after: readonly [string, string] | undefined;
}

const LIST = `
  WITH page AS (
    SELECT *, date_trunc('milliseconds', requested_at) AS at FROM payments
     WHERE ($state::text IS NULL OR state = $state)
       AND ($at::timestamptz IS NULL OR
            (date_trunc('milliseconds', requested_at), id) < ($at::timestamptz, $id))
     ORDER BY at DESC, id DESC LIMIT $limit
  )
  SELECT id, cause, chain_id AS "chainId", signer, state, failure, nonce, hash,
         block_number AS block, attempts, at AS "requestedAt", settled_at AS "settledAt",
         floor(extract(epoch FROM coalesce(settled_at, now()) - requested_at)) AS age,
         (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'hash', t.hash, 'nonce', t.nonce::text, 'purpose', t.purpose,
                   'active', t.active, 'refused', t.refused, 'maxFee', t.max_fee::text,
                   'signedAt', t.signed_at, 'broadcastAt', t.broadcast_at, 'finalAt', t.final_at)
                   ORDER BY t.signed_at, t.hash), '[]')
            FROM transactions t WHERE t.payment_id = page.id) AS transactions
    FROM page ORDER BY at DESC, id DESC`;

/** Lists payments of all signers, newest first. @param db statements of the platform. */
export const listPayments = (
  db: Statements,
  { after, limit, state }: PaymentPage,
): Promise<ListedPayment[]> =>
  db.query<ListedPayment>(LIST, {
    state: state ?? null,
    at: after?.[0] ?? null,
    id: after?.[1] ?? null,
    limit,
  });
