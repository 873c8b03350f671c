/** States of a split: created, being paid, or ended; only a retry leaves an end state. */
export const SPLIT_STATUSES = ['queued', 'processing', 'completed', 'partial', 'failed'] as const;

export type SplitStatus = (typeof SPLIT_STATUSES)[number];

/** States of a payout. `sent` may be paid at any time; `skipped` has no amount. */
export const PAYOUT_STATUSES = ['pending', 'sent', 'confirmed', 'failed', 'skipped'] as const;

export type PayoutStatus = (typeof PAYOUT_STATUSES)[number];

/** States that a workflow has yet to end. */
export const OPEN_STATUSES = ['queued', 'processing'] as const satisfies readonly SplitStatus[];

export const RETRIED_STATUSES = ['partial', 'failed'] as const satisfies readonly SplitStatus[];

/** Returns the state of a split by its payouts: `processing` while any is pending or in flight. */
export function splitStatusOf(payouts: readonly PayoutStatus[]): SplitStatus {
  if (payouts.some((status) => status === 'pending' || status === 'sent')) return 'processing';
  if (!payouts.includes('failed')) return 'completed';
  return payouts.includes('confirmed') ? 'partial' : 'failed';
}
