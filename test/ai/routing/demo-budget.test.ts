// @module-tag attack
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DemoBudget } from '../../../src/ai/routing/demo-budget.js';
import { TooManyRequestsError } from '../../../src/lib/errors.js';
import { networksOf } from '../../../src/platform/http/client-networks.js';

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => vi.useRealTimers());

const DAY_MS = 24 * 60 * 60_000;

test('a visitor who has used up the demo tokens of a day does not block others', () => {
  const budget = new DemoBudget();
  const greedy = networksOf('192.0.2.1');
  for (let count = 0; count < 10; count++) budget.hold(greedy, 10_000);
  expect(() => budget.hold(greedy, 1)).toThrow(TooManyRequestsError);
  budget.hold(networksOf('192.0.2.2'), 10_000);
  vi.advanceTimersByTime(DAY_MS);
  budget.hold(greedy, 10_000);
});

test('a day of demo tokens is as long when the clock is set back', () => {
  const budget = new DemoBudget();
  const visitor = networksOf('192.0.2.1');
  budget.hold(visitor, 100_000);
  vi.setSystemTime(-DAY_MS);
  vi.advanceTimersByTime(DAY_MS);
  budget.hold(visitor, 100_000);
});

test('addresses of one site share a budget, and tokens that a call did not use are returned', () => {
  const budget = new DemoBudget();
  const settle = budget.hold(networksOf('2001:db8:1:1::1'), 90_000);
  expect(() => budget.hold(networksOf('2001:db8:1:2::1'), 90_000)).toThrow(TooManyRequestsError);
  settle(1_000);
  budget.hold(networksOf('2001:db8:1:2::1'), 90_000);
});
