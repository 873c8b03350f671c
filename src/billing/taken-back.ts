import type { ProcessorFact } from '../types/processor-events.js';

/** A fact with the time of its event, in whole seconds. */
export interface DatedFact {
  readonly fact: ProcessorFact;
  readonly happenedAt: Date;
}

/** States of a dispute in their order; the amount is withdrawn while a dispute is open, and after it is lost. */
const STATUSES = [
  ...['warning_needs_response', 'warning_under_review', 'needs_response', 'under_review'],
  ...['warning_closed', 'prevented', 'lost', 'won'],
];

const OPEN = ['needs_response', 'under_review'];

/**
 * Returns the reversed cents of a payment: by refunds that reached the buyer, and by open or lost
 * disputes; at most `paid`. The result does not depend on the order of the facts, nor on repetitions.
 */
export function takenBack(facts: readonly DatedFact[], paid: number): number {
  return Math.min(refunded(facts) + disputed(facts), paid);
}

/** Returns the latest sum of refunds without those that failed since. */
function refunded(facts: readonly DatedFact[]): number {
  let sum = 0;
  let at = -Infinity;
  for (const { fact, happenedAt } of facts) {
    if (fact.kind !== 'refunded') continue;
    const time = happenedAt.getTime();
    // Within a second refunds add up, so the larger sum is the later one.
    if (time > at || (time === at && fact.cents > sum)) [sum, at] = [fact.cents, time];
  }
  const failed = new Map<string, { readonly cents: number; readonly at: number }>();
  for (const { fact, happenedAt } of facts) {
    if (fact.kind !== 'refund-failed') continue;
    const time = Math.min(happenedAt.getTime(), failed.get(fact.refundId)?.at ?? Infinity);
    failed.set(fact.refundId, { cents: fact.cents, at: time });
  }
  const since = [...failed.values()].filter((each) => each.at >= at);
  return Math.max(
    since.reduce((left, { cents }) => left - cents, sum),
    0,
  );
}

/** Reports whether a dispute of the payment is open. */
export const isDisputed = (facts: readonly DatedFact[]): boolean =>
  disputesOf(facts).some(({ status }) => OPEN.includes(status));

const disputed = (facts: readonly DatedFact[]): number =>
  disputesOf(facts)
    .filter(({ status }) => OPEN.includes(status) || status === 'lost')
    .reduce((sum, { cents }) => sum + cents, 0);

/** Returns the latest state of each dispute. */
function disputesOf(facts: readonly DatedFact[]) {
  const latest = new Map<string, { rank: number; at: number; cents: number; status: string }>();
  for (const { fact, happenedAt } of facts) {
    if (fact.kind !== 'dispute') continue;
    const { cents, disputeId, status } = fact;
    const [at, rank] = [happenedAt.getTime(), STATUSES.indexOf(status)];
    const known = latest.get(disputeId);
    if (known && (known.at > at || (known.at === at && known.rank >= rank))) continue;
    latest.set(disputeId, { rank, at, cents, status });
  }
  return [...latest.values()];
}
