import type { Statements } from '../../platform/database/database.js';
import type { PaymentFailure } from '../../types/payment.js';

export interface UsedGas {
  /** Cause of the payment. */
  readonly cause: string;
  /** Undefined if the payment succeeded. */
  readonly failure: PaymentFailure | undefined;
  /** Gas from the final receipt; undefined without a transaction. */
  readonly gas: bigint | undefined;
}

/** A row that counts for nothing: no gas was used, and no opening has failed. */
const IS_FREE = `$gas::numeric = 0 AND NOT ($isFault AND wallet IS NOT NULL)`;

const SETTLE = `
  WITH settled AS (
    UPDATE gas_reservations
       SET gas = least(coalesce($gas::numeric, gas), gas), settled_at = now(),
           has_failed = $isFault AND wallet IS NOT NULL
     WHERE id = $cause AND settled_at IS NULL AND (${IS_FREE}) IS NOT TRUE
  )
  DELETE FROM gas_reservations WHERE id = $cause AND settled_at IS NULL AND ${IS_FREE}`;

/** Settles the gas of a payment that has ended; a payment without a reservation is ignored. */
export async function settleGas(db: Statements, { cause, failure, gas }: UsedGas): Promise<void> {
  // An unknown payment may have been made by a transaction that the database does not have.
  const used = failure === 'unknown' ? undefined : (gas ?? 0n);
  const isFault = failure === 'refused' || failure === 'reverted';
  await db.query(SETTLE, { cause, isFault, gas: used === undefined ? null : String(used) });
}

/** Releases the gas of a payment that will not be requested. */
export async function releaseGas(db: Statements, cause: string): Promise<void> {
  await db.query('DELETE FROM gas_reservations WHERE id = $cause AND settled_at IS NULL', {
    cause,
  });
}
