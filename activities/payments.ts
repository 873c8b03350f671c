import { Context } from '@temporalio/activity';
import type { TableChanges } from '../src/platform/database/row-changes.js';
import type { PaymentWatch, SettledPayment } from '../src/money/payments/payment-watch.js';
import type { Signers } from '../src/money/payments/signers.js';
import { heartbeating } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';
import { unchanged } from './watchdog.js';

/**
 * Between two looks at what is on its way, in milliseconds: from so many after something was heard, each
 * time twice as long, up to so many.
 */
const FIRST_LOOK_MS = 5;
const LOOK_MS = 250;

/** For how long a signer that has nothing to pay is still looked at: what comes then need not wait. */
const LINGER_MS = 5_000;

/**
 * For how long one that waits has a slot of the worker, in milliseconds: who pays comes by one as well, however
 * many wait, and between two times Temporal has them.
 */
const WAIT_MS = 60_000;
const AGAIN_MS = 1_000;

export interface PaymentActivityDependencies {
  readonly signers: Pick<Signers, 'of'>;
  readonly watch: Pick<PaymentWatch, 'settled'>;
  /** Of payments. */
  readonly changes: TableChanges;
  /** Milliseconds of one wait; 60,000 unless said. */
  readonly waitMs?: number;
}

/** What makes payments. Any of it may be done again, and beside itself. */
export function createPaymentActivities({
  changes,
  signers,
  waitMs = WAIT_MS,
  watch,
}: PaymentActivityDependencies) {
  return {
    /** Pays what a signer has to pay, and returns when that is nothing any more. */
    payAll: (signerId: string): Promise<void> =>
      asApplicationFailure(() =>
        heartbeating(async () => {
          const { cancellationSignal: signal, info } = Context.current();
          // The owner that its run was started for.
          const signer = signers.of(signerId, info.priority?.fairnessKey);
          let idleSince: number | undefined;
          let [heard, waits] = [changes.count, FIRST_LOOK_MS];
          for (;;) {
            const { count } = changes;
            if (await signer.step()) idleSince = undefined;
            else if (performance.now() - (idleSince ??= performance.now()) > LINGER_MS) return;
            waits = count === heard ? Math.min(waits * 2, LOOK_MS) : FIRST_LOOK_MS;
            heard = count;
            await changes.after(count, waits, signal);
            signal.throwIfAborted();
          }
        }),
      ),

    /** Waits until a payment is final, however long that takes. */
    awaitPayment: (cause: string): Promise<SettledPayment> =>
      asApplicationFailure(() =>
        heartbeating(async () => {
          const { cancellationSignal } = Context.current();
          const over = AbortSignal.timeout(waitMs);
          try {
            return await watch.settled(cause, AbortSignal.any([cancellationSignal, over]));
          } catch (error) {
            if (error === over.reason) throw unchanged(AGAIN_MS);
            throw error;
          }
        }),
      ),
  };
}

export type PaymentActivities = ReturnType<typeof createPaymentActivities>;
