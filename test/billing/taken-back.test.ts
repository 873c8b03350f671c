import { expect, test } from 'vitest';
import { takenBack, type DatedFact } from '../../src/billing/taken-back.js';
import type { ProcessorFact } from '../../src/types/processor-events.js';
import { Random } from '../support/random.js';

const usd = { currency: 'usd' } as const;
const at = (second: number, fact: ProcessorFact): DatedFact => ({
  fact,
  happenedAt: new Date(second * 1_000),
});
const refunded = (second: number, cents: number) => at(second, { kind: 'refunded', cents, ...usd });
const failed = (second: number, refundId: string, cents: number) =>
  at(second, { kind: 'refund-failed', refundId, cents, ...usd });
const dispute = (second: number, status: string, { cents = 1_000, disputeId = 'dp_1' } = {}) =>
  at(second, { kind: 'dispute', disputeId, status, cents, ...usd });

test.each<[string, readonly DatedFact[], number]>([
  ['a payment without reversals', [], 0],
  ['the cumulative sum of refunds', [refunded(1, 300), refunded(2, 500)], 500],
  ['the larger of two sums of one second', [refunded(1, 500), refunded(1, 300)], 500],
  ['nothing of a refund that failed', [refunded(1, 300), failed(5, 're_1', 300)], 0],
  [
    'a refund that failed once, however often that is reported',
    [refunded(1, 500), failed(5, 're_1', 300), failed(6, 're_1', 300)],
    200,
  ],
  [
    'a refund after one that failed',
    [refunded(1, 300), failed(5, 're_1', 300), refunded(9, 400)],
    400,
  ],
  ['an open dispute', [dispute(1, 'needs_response')], 1_000],
  ['nothing of an inquiry', [dispute(1, 'warning_needs_response')], 0],
  ['a lost dispute', [dispute(1, 'needs_response'), dispute(2, 'lost')], 1_000],
  ['nothing of a won dispute', [dispute(1, 'needs_response'), dispute(2, 'won')], 0],
  [
    'nothing of a dispute won within a second',
    [dispute(1, 'needs_response'), dispute(1, 'won')],
    0,
  ],
  ['refund and dispute, at most the payment', [refunded(1, 300), dispute(2, 'lost')], 1_000],
  [
    'two disputes of parts',
    [
      dispute(1, 'lost', { cents: 200 }),
      dispute(1, 'under_review', { cents: 300, disputeId: 'dp_2' }),
    ],
    500,
  ],
])('calculates the credits to remove after %s, in any order', (_, facts, expected) => {
  const random = new Random(1);
  for (let round = 0; round < 50; round += 1) {
    expect(takenBack(random.shuffled([...facts, ...facts]), 1_000)).toBe(expected);
  }
});
