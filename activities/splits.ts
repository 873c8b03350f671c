import type { SplitPayments } from '../src/money/splits/split-payments.js';
import { asApplicationFailure } from './failures.js';

/** Creates the activities of splits. Each is idempotent, and a step that has to wait is retried. */
export function createSplitActivities(
  splits: Pick<SplitPayments, 'request' | 'settle' | 'finish'>,
) {
  return {
    /** Returns the causes of payments in flight, after reading the wallet's balance from the chain. */
    requestSplitPayments: (id: string) => asApplicationFailure(() => splits.request(id)),
    settleSplitPayment: (id: string, cause: string) =>
      asApplicationFailure(() => splits.settle(id, cause)),
    finishSplit: (id: string) => asApplicationFailure(() => splits.finish(id)),
  };
}

export type SplitActivities = ReturnType<typeof createSplitActivities>;
