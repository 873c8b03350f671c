import type { SessionHolds } from '../src/money/sessions/session-holds.js';
import type { SessionOpenings } from '../src/money/sessions/session-openings.js';
import type { SessionSettlements } from '../src/money/sessions/session-settlements.js';
import { asApplicationFailure } from './failures.js';
import { unchanged } from './watchdog.js';

const LOOK_AGAIN_MS = 500;

/** Creates the activities of the workers that can open keys. Each is idempotent, and takes the row's id. */
export function createSessionHoldActivities(holds: Pick<SessionHolds, 'request'>) {
  return {
    /** Returns the cause of the payment that holds the deposit; undefined if none is made. */
    requestSessionHold: (id: string) => asApplicationFailure(() => holds.request(id)),
  };
}

/** Creates the activities that open sessions. A step that has to wait is retried. */
export function createPaymentSessionActivities(openings: Pick<SessionOpenings, 'finish'>) {
  return {
    /** Returns false for a session that was not opened. */
    finishSessionOpening: (id: string) => asApplicationFailure(() => openings.finish(id)),
  };
}

export type SessionHoldActivities = ReturnType<typeof createSessionHoldActivities>;
export type PaymentSessionActivities = ReturnType<typeof createPaymentSessionActivities>;

/** Creates the activities that request the due payments of sessions and record the results. */
export function createSettlementActivities(
  settlements: Pick<SessionSettlements, 'request' | 'hasNoDebits' | 'settle' | 'closeAged'>,
) {
  return {
    requestSettlement: (id: string) => asApplicationFailure(() => settlements.request(id)),
    /**
     * Waits until all debits have ended. Temporal holds the wait between polls, so no worker slot is used.
     */
    awaitDebits: (id: string): Promise<void> =>
      asApplicationFailure(async () => {
        if (!(await settlements.hasNoDebits(id))) throw unchanged(LOOK_AGAIN_MS);
      }),
    recordSettlement: (id: string, cause: string) =>
      asApplicationFailure(() => settlements.settle(id, cause)),
    /** Returns the number of sessions that this call begins to close. */
    closeAgedSessions: () => asApplicationFailure(() => settlements.closeAged()),
  };
}

export type SettlementActivities = ReturnType<typeof createSettlementActivities>;
