import { Context } from '@temporalio/activity';
import type { TableNews } from '../src/database/row-news.js';
import type { PaymentWatch, SettledPayment } from '../src/payments/payment-watch.js';
import type { Signers } from '../src/payments/signers.js';
import { heartbeating } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';

/**
 * Between two looks at what is on its way, in milliseconds: from so many after something was heard, each
 * time twice as long, up to so many.
 */
const FIRST_LOOK_MS = 5;
const LOOK_MS = 250;

/** For how long a signer that has nothing to pay is still looked at: what comes then need not wait. */
const LINGER_MS = 5_000;

export interface PaymentActivityDependencies {
  readonly signers: Pick<Signers, 'of'>;
  readonly watch: Pick<PaymentWatch, 'settled'>;
  /** Of payments. */
  readonly news: TableNews;
}

/** What makes payments. Any of it may be done again, and beside itself. */
export function createPaymentActivities({ news, signers, watch }: PaymentActivityDependencies) {
  return {
    /** Pays what a signer has to pay, and returns when that is nothing any more. */
    payAll: (signerId: string): Promise<void> =>
      asApplicationFailure(() =>
        heartbeating(async () => {
          const { cancellationSignal: signal } = Context.current();
          const signer = signers.of(signerId);
          let idleSince: number | undefined;
          let [heard, waits] = [news.count, FIRST_LOOK_MS];
          for (;;) {
            const { count } = news;
            if (await signer.step()) idleSince = undefined;
            else if (performance.now() - (idleSince ??= performance.now()) > LINGER_MS) return;
            waits = count === heard ? Math.min(waits * 2, LOOK_MS) : FIRST_LOOK_MS;
            heard = count;
            await news.after(count, waits, signal);
            signal.throwIfAborted();
          }
        }),
      ),

    /** Waits until a payment is final, however long that takes. */
    awaitPayment: (cause: string): Promise<SettledPayment> =>
      asApplicationFailure(() =>
        heartbeating(() => watch.settled(cause, Context.current().cancellationSignal)),
      ),
  };
}

export type PaymentActivities = ReturnType<typeof createPaymentActivities>;
