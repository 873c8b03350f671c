import type { Logger } from 'pino';
import { describeError } from '../../lib/describe-error.js';
import { PaymentUnknownError, type PaymentWatch } from '../payments/payment-watch.js';
import { openingCause } from './causes.js';
import type { SessionOpenings } from './session-openings.js';
import type { SessionSettlements } from './session-settlements.js';

/** Payments that closing a session takes: the settlement in flight, and the final one. */
const MAX_PAYMENTS = 2;

/** Milliseconds that the longest request waits. */
const MOST_MS = 30_000;

interface Parts {
  readonly openings: Pick<SessionOpenings, 'finish'>;
  readonly settlements: Pick<SessionSettlements, 'request' | 'settle'>;
  readonly payments: Pick<PaymentWatch, 'settled'>;
  readonly log: Logger;
}

/**
 * Speeds up a session that a request waits for, beside its workflow; every step is idempotent. The
 * workflow completes whatever is not done here or fails.
 */
export class SessionFastPath {
  readonly #parts: Parts;
  /** Work in flight by kind and session; shared by all requests that wait. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Opens a session as soon as its hold is final. For a wallet whose key is stored here, the workflow
   * requests the hold.
   */
  open(id: string, signal: AbortSignal): Promise<void> {
    return this.#forAll('open', id, signal, async (whileWaited) => {
      await this.#parts.payments.settled(openingCause(id), whileWaited);
      await this.#parts.openings.finish(id);
    });
  }

  /** Settles a session that is being closed, unless debits have open holds. */
  close(id: string, signal: AbortSignal): Promise<void> {
    const { payments, settlements } = this.#parts;
    return this.#forAll('close', id, signal, async (whileWaited) => {
      for (let n = 0; n < MAX_PAYMENTS; n++) {
        const step = await settlements.request(id);
        if (step.next !== 'payment') return;
        await payments.settled(step.cause, whileWaited);
        await settlements.settle(id, step.cause);
      }
    });
  }

  /** Waits until the shared work ends or the signal aborts; the work continues for other callers. */
  async #forAll(
    what: 'open' | 'close',
    id: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const key = `${what} ${id}`;
    let underWay = this.#underWay.get(key);
    if (!underWay) {
      underWay = this.#trying(id, AbortSignal.timeout(MOST_MS), work).finally(() =>
        this.#underWay.delete(key),
      );
      this.#underWay.set(key, underWay);
    }
    await orAborted(underWay, signal);
  }

  async #trying(
    id: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    try {
      await work(signal);
    } catch (error) {
      if (signal.aborted || error instanceof PaymentUnknownError) return;
      this.#parts.log.warn(
        { session: id, error: describeError(error) },
        'payment session left to its workflow',
      );
    }
  }
}

/** Waits until the work ends or the signal aborts. */
async function orAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  let stop: () => void = () => undefined;
  const aborted = new Promise<void>((resolve) => (stop = resolve));
  signal.addEventListener('abort', stop, { once: true });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
