import type { SplitPayments } from '../src/money/splits/split-payments.js';
import { asApplicationFailure } from './failures.js';

/** What splits ask for. All of it is idempotent, and what has to wait is asked for again. */
export function createSplitActivities(
  splits: Pick<SplitPayments, 'request' | 'settle' | 'finish'>,
) {
  return {
    /** Asks the chain what is in the wallet. @returns the causes of payments that are under way. */
    requestSplitPayments: (id: string) => asApplicationFailure(() => splits.request(id)),
    settleSplitPayment: (id: string, cause: string) =>
      asApplicationFailure(() => splits.settle(id, cause)),
    finishSplit: (id: string) => asApplicationFailure(() => splits.finish(id)),
  };
}

export type SplitActivities = ReturnType<typeof createSplitActivities>;
