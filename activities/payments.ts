import { Context } from '@temporalio/activity';
import type { TableChanges } from '../src/platform/database/row-changes.js';
import type { PaymentWatch } from '../src/money/payments/payment-watch.js';
import type { EndedPayment } from '../src/types/payment.js';
import type { Signers } from '../src/money/payments/signers.js';
import { heartbeating } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';
import { unchanged } from './watchdog.js';

/** Milliseconds between two polls: the first after a notification, then doubled up to the last. */
const FIRST_CHECK_MS = 5;
const CHECK_MS = 250;

/** Milliseconds for which an idle signer is still polled, so that a new payment starts at once. */
const LINGER_MS = 5_000;

/**
 * Milliseconds that one wait keeps a worker slot, and the pause before its next turn: payers need slots too,
 * however many activities wait.
 */
const WAIT_MS = 60_000;
const AGAIN_MS = 1_000;

export interface PaymentActivityDependencies {
  readonly signers: Pick<Signers, 'of'>;
  readonly watch: Pick<PaymentWatch, 'settled'>;
  readonly changes: TableChanges;
  readonly waitMs?: number;
}

/** Creates the activities that make payments. Each is idempotent and may run concurrently with itself. */
export function createPaymentActivities({
  changes,
  signers,
  waitMs = WAIT_MS,
  watch,
}: PaymentActivityDependencies) {
  return {
    /** Makes the pending payments of a signer, and returns when none is left. */
    payAll: (signerId: string): Promise<void> =>
      asApplicationFailure(() =>
        heartbeating(async () => {
          const { cancellationSignal: signal, info } = Context.current();
          // The owner for which the run was started.
          const signer = signers.of(signerId, info.priority?.fairnessKey);
          let idleSince: number | undefined;
          let [seen, waits] = [changes.count, FIRST_CHECK_MS];
          for (;;) {
            const { count } = changes;
            if (await signer.step()) idleSince = undefined;
            else if (performance.now() - (idleSince ??= performance.now()) > LINGER_MS) return;
            waits = count === seen ? Math.min(waits * 2, CHECK_MS) : FIRST_CHECK_MS;
            seen = count;
            await changes.after(count, waits, signal);
            signal.throwIfAborted();
          }
        }),
      ),

    /** Waits until a payment is final, without a time limit. */
    awaitPayment: (cause: string): Promise<EndedPayment> =>
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
