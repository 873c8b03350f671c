import type { Logger } from 'pino';
import { describeError } from '../describe-error.js';
import { PaymentUnknownError, type PaymentWatch } from '../payments/payment-watch.js';
import { openingCause } from './causes.js';
import type { SessionOpenings } from './session-openings.js';
import type { SessionSettlements } from './session-settlements.js';

/** Payments that closing a session takes: what is being settled, and the rest. */
const MAX_PAYMENTS = 2;

interface Parts {
  readonly openings: Pick<SessionOpenings, 'finish'>;
  readonly settlements: Pick<SessionSettlements, 'request' | 'settle'>;
  readonly payments: Pick<PaymentWatch, 'settled'>;
  readonly log: Logger;
}

/**
 * Does what is next for a session where somebody waits for it, beside its run, as each step may be. What
 * it does not come to, or fails at, is the run's, which needs none of it.
 */
export class SessionHaste {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Opens a session as soon as its hold is final. One whose wallet is kept is asked for by its run. */
  open(id: string, signal: AbortSignal): Promise<void> {
    return this.#trying(id, signal, async () => {
      await this.#parts.payments.settled(openingCause(id), signal);
      await this.#parts.openings.finish(id);
    });
  }

  /** Has a session that is being closed settled, unless something is held for debits. */
  close(id: string, signal: AbortSignal): Promise<void> {
    const { payments, settlements } = this.#parts;
    return this.#trying(id, signal, async () => {
      for (let n = 0; n < MAX_PAYMENTS; n++) {
        const step = await settlements.request(id);
        if (step.next !== 'payment') return;
        await payments.settled(step.cause, signal);
        await settlements.settle(id, step.cause);
      }
    });
  }

  async #trying(id: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (signal.aborted || error instanceof PaymentUnknownError) return;
      this.#parts.log.warn(
        { session: id, error: describeError(error) },
        'a payment session is left to its run',
      );
    }
  }
}
