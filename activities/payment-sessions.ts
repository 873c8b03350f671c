import type { SessionHolds } from '../src/money/sessions/session-holds.js';
import type { SessionOpenings } from '../src/money/sessions/session-openings.js';
import type { SessionSettlements } from '../src/money/sessions/session-settlements.js';
import { asApplicationFailure } from './failures.js';
import { unchanged } from './watchdog.js';

/** Between two looks at what is held for debits, in milliseconds. */
const LOOK_AGAIN_MS = 500;

/** What sessions ask for where keys are opened. Each is named by its row, and may be asked for again. */
export function createSessionHoldActivities(holds: Pick<SessionHolds, 'request'>) {
  return {
    /** @returns the cause of the payment that has the deposit held; undefined when there is none. */
    requestSessionHold: (id: string) => asApplicationFailure(() => holds.request(id)),
  };
}

/** What sessions ask for of the database and the chain: what has to wait is asked for again. */
export function createPaymentSessionActivities(openings: Pick<SessionOpenings, 'finish'>) {
  return {
    /** @returns false for a session that was not opened. */
    finishSessionOpening: (id: string) => asApplicationFailure(() => openings.finish(id)),
  };
}

export type SessionHoldActivities = ReturnType<typeof createSessionHoldActivities>;
export type PaymentSessionActivities = ReturnType<typeof createPaymentSessionActivities>;

/** What settles sessions: it asks for what is due, and writes down what came of it. */
export function createSettlementActivities(
  settlements: Pick<SessionSettlements, 'request' | 'hasNoDebits' | 'settle' | 'closeAged'>,
) {
  return {
    requestSettlement: (id: string) => asApplicationFailure(() => settlements.request(id)),
    /** Waits for the end of all debits: between two looks Temporal has it, not this worker. */
    awaitDebits: (id: string): Promise<void> =>
      asApplicationFailure(async () => {
        if (!(await settlements.hasNoDebits(id))) throw unchanged(LOOK_AGAIN_MS);
      }),
    recordSettlement: (id: string, cause: string) =>
      asApplicationFailure(() => settlements.settle(id, cause)),
    /** @returns how many are being closed from here on. */
    closeAgedSessions: () => asApplicationFailure(() => settlements.closeAged()),
  };
}

export type SettlementActivities = ReturnType<typeof createSettlementActivities>;
