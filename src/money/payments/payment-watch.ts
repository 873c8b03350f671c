import type { TableChanges } from '../../platform/database/row-changes.js';
import { RowWatch } from '../../platform/database/row-watch.js';
import type { ChainPayments } from './chain-payments.js';
import { isEnded, type EndedPayment, type PaymentStatus } from '../../types/payment.js';

/** No payment was requested under the cause. */
export class PaymentUnknownError extends Error {
  override readonly name = 'PaymentUnknownError';

  constructor(cause: string) {
    super(`No payment was requested under the cause ${cause}`);
  }
}

export class PaymentWatch {
  readonly #rows: RowWatch<PaymentStatus>;

  /** @param changes changes of the payments table. */
  constructor(payments: Pick<ChainPayments, 'statesOf'>, changes: TableChanges) {
    this.#rows = new RowWatch(changes, (causes) => payments.statesOf(causes));
  }

  /**
   * Waits until a payment has ended.
   *
   * @throws PaymentUnknownError, database errors, and the signal's reason.
   */
  async settled(cause: string, signal: AbortSignal): Promise<EndedPayment> {
    const status = await this.#rows.until(cause, (each) => !each || isEnded(each), signal);
    if (!status) throw new PaymentUnknownError(cause);
    if (isEnded(status)) return status;
    throw signal.reason;
  }
}
