// @module-tag attack
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DemoShares } from '../../../src/ai/routing/demo-shares.js';
import { TooManyRequestsError } from '../../../src/lib/errors.js';
import { networksOf } from '../../../src/platform/http/client-networks.js';

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => vi.useRealTimers());

const DAY_MS = 24 * 60 * 60_000;

test('a visitor who has used a day of demo tokens keeps nobody else from it', () => {
  const shares = new DemoShares();
  const greedy = networksOf('192.0.2.1');
  for (let count = 0; count < 10; count++) shares.hold(greedy, 10_000);
  expect(() => shares.hold(greedy, 1)).toThrow(TooManyRequestsError);
  shares.hold(networksOf('192.0.2.2'), 10_000);
  vi.advanceTimersByTime(DAY_MS);
  shares.hold(greedy, 10_000);
});

test('a day of demo tokens is as long when the clock is set back meanwhile', () => {
  const shares = new DemoShares();
  const visitor = networksOf('192.0.2.1');
  shares.hold(visitor, 100_000);
  vi.setSystemTime(-DAY_MS);
  vi.advanceTimersByTime(DAY_MS);
  shares.hold(visitor, 100_000);
});

test('addresses of one site share, and what a call did not use is given back', () => {
  const shares = new DemoShares();
  const settle = shares.hold(networksOf('2001:db8:1:1::1'), 90_000);
  expect(() => shares.hold(networksOf('2001:db8:1:2::1'), 90_000)).toThrow(TooManyRequestsError);
  settle(1_000);
  shares.hold(networksOf('2001:db8:1:2::1'), 90_000);
});
