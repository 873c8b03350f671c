import { setTimeout as delay } from 'node:timers/promises';
import type { ChainPayments } from './chain-payments.js';
import type { PaymentStatus } from './payment.js';

/** Between two looks, in milliseconds. */
const LOOK_MS = 250;

/** Nobody has asked for a payment with the cause. */
export class PaymentUnknownError extends Error {
  override readonly name = 'PaymentUnknownError';

  constructor(cause: string) {
    super(`No payment was asked for under the cause ${cause}`);
  }
}

/** How a payment has ended. */
export type SettledPayment = PaymentStatus & { readonly state: 'confirmed' | 'failed' };

/** Waits for payments, however many, with one statement for all of them at a time. */
export class PaymentWatch {
  readonly #payments: Pick<ChainPayments, 'statesOf'>;
  readonly #awaited = new Map<string, number>();
  #look: ReturnType<ChainPayments['statesOf']> | undefined;

  constructor(payments: Pick<ChainPayments, 'statesOf'>) {
    this.#payments = payments;
  }

  /** @throws PaymentUnknownError, what the database throws, and the signal's reason. */
  async settled(cause: string, signal: AbortSignal): Promise<SettledPayment> {
    this.#awaited.set(cause, (this.#awaited.get(cause) ?? 0) + 1);
    try {
      for (;;) {
        const status = (await this.#next()).get(cause);
        if (isSettled(status)) return status;
        await delay(LOOK_MS, undefined, { signal });
        if (!status && !(await this.#payments.statesOf([cause])).has(cause)) {
          throw new PaymentUnknownError(cause);
        }
      }
    } finally {
      const others = (this.#awaited.get(cause) ?? 1) - 1;
      if (others > 0) this.#awaited.set(cause, others);
      else this.#awaited.delete(cause);
    }
  }

  /** The look that is under way, or a new one at all that is awaited now. */
  #next(): ReturnType<ChainPayments['statesOf']> {
    this.#look ??= this.#payments.statesOf([...this.#awaited.keys()]).finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }
}

const isSettled = (status: PaymentStatus | undefined): status is SettledPayment =>
  status?.state === 'confirmed' || status?.state === 'failed';
