import type { SessionHolds } from '../src/payment-sessions/session-holds.js';
import type { SessionOpenings } from '../src/payment-sessions/session-openings.js';
import { asApplicationFailure } from './failures.js';

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
