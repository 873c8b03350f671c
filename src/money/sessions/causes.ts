/** Of the payment that has a session's deposit held, and of what the ledger books of it. */
export const openingCause = (sessionId: string) => `session-open:${sessionId}`;

/** Of the payments, and the transfer, by which the treasury has had so many base units all in all. */
export const settlementCause = (sessionId: string, cumulative: string) =>
  `settlement:${sessionId}:${cumulative}`;

/** Of what is held for a run, and posted by its voucher; `hold_debit` and `post_debit` name it so, too. */
export const voucherCause = (voucherId: string) => `voucher:${voucherId}`;

/** Of what its wallet gets back of a deposit. */
export const refundCause = (sessionId: string) => `session-refund:${sessionId}`;

/** Of what was delivered, and taken back on chain before it was settled. */
export const unpaidCause = (sessionId: string) => `session-unpaid:${sessionId}`;

/** What is left of a session's deposit, in the ledger. */
export const sessionAccount = (sessionId: string) => `session:${sessionId}` as const;

/** What was delivered of it and is not settled. */
export const spentAccount = (sessionId: string) => `session:${sessionId}:spent` as const;
