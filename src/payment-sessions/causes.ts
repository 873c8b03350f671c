/** Of the payment that has a session's deposit held, and of what the ledger books of it. */
export const openingCause = (sessionId: string) => `session-open:${sessionId}`;

/** What is left of a session's deposit, in the ledger. */
export const sessionAccount = (sessionId: string) => `session:${sessionId}` as const;
