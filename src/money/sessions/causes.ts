/** Cause of the payment that opens the hold of a session's deposit, and of its ledger entry. */
export const openingCause = (sessionId: string) => `session-open:${sessionId}`;

/** Reports whether a payment's cause is the opening of a hold. */
export const isOpening = (cause: string): boolean => cause.startsWith(openingCause(''));

/** Cause of the payments and the transfer that bring the treasury's total to `cumulative` base units. */
export const settlementCause = (sessionId: string, cumulative: string) =>
  `settlement:${sessionId}:${cumulative}`;

/** Cause of a debit's hold and of its posting by a voucher; `hold_debit` and `post_debit` use it too. */
export const voucherCause = (voucherId: string) => `voucher:${voucherId}`;

/** Cause of the refund of a deposit's rest to its wallet. */
export const refundCause = (sessionId: string) => `session-refund:${sessionId}`;

/** Cause of writing off a delivered amount that was reclaimed on chain before settlement. */
export const unpaidCause = (sessionId: string) => `session-unpaid:${sessionId}`;

/** Ledger account of the rest of a session's deposit. */
export const sessionAccount = (sessionId: string) => `session:${sessionId}` as const;

/** Ledger account of a session's delivered and unsettled amount. */
export const spentAccount = (sessionId: string) => `session:${sessionId}:spent` as const;

/** Returns the row id of the session that a payment's cause names; undefined for other payments. */
export const sessionOf = (cause: string): string | undefined =>
  /^(?:session-open|settlement):([^:]+)/.exec(cause)?.[1];
