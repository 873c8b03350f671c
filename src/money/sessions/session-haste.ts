import type { Logger } from 'pino';
import { describeError } from '../../lib/describe-error.js';
import { PaymentUnknownError, type PaymentWatch } from '../payments/payment-watch.js';
import { openingCause } from './causes.js';
import type { SessionOpenings } from './session-openings.js';
import type { SessionSettlements } from './session-settlements.js';

/** Payments that closing a session takes: what is being settled, and the rest. */
const MAX_PAYMENTS = 2;

/** For as long as the longest request waits, in milliseconds. */
const MOST_MS = 30_000;

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
  /** What is done now, by what it is and for which session: however many wait for one, it is done for all of them. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Opens a session as soon as its hold is final. One whose wallet is kept is asked for by its run. */
  open(id: string, signal: AbortSignal): Promise<void> {
    return this.#forAll('open', id, signal, async (whileWaited) => {
      await this.#parts.payments.settled(openingCause(id), whileWaited);
      await this.#parts.openings.finish(id);
    });
  }

  /** Has a session that is being closed settled, unless something is held for debits. */
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

  /** Until it is done, or the signal aborts: then it goes on for the others. */
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
        'a payment session is left to its run',
      );
    }
  }
}

/** Until the work is done or the signal aborts. */
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
