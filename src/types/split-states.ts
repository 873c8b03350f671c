/** Where a split is: made, being paid, or at an end that only a retry leaves. */
export const SPLIT_STATUSES = ['queued', 'processing', 'completed', 'partial', 'failed'] as const;

export type SplitStatus = (typeof SPLIT_STATUSES)[number];

/**
 * Where a payout is. `sent` is one whose payment was asked for, which may have been made from then on;
 * `skipped` is one of nothing.
 */
export const PAYOUT_STATUSES = ['pending', 'sent', 'confirmed', 'failed', 'skipped'] as const;

export type PayoutStatus = (typeof PAYOUT_STATUSES)[number];

/** Those that a run has still to bring to an end. */
export const OPEN_STATUSES = ['queued', 'processing'] as const satisfies readonly SplitStatus[];

/** Those that may be retried. */
export const RETRIED_STATUSES = ['partial', 'failed'] as const satisfies readonly SplitStatus[];

/**
 * What becomes of a split, given its payouts.
 *
 * @returns `processing` as long as a payout is pending or under way.
 */
export function statusOf(payouts: readonly PayoutStatus[]): SplitStatus {
  if (payouts.some((status) => status === 'pending' || status === 'sent')) return 'processing';
  if (!payouts.includes('failed')) return 'completed';
  return payouts.includes('confirmed') ? 'partial' : 'failed';
}
