import { expect, test } from 'vitest';
import { unchanged } from '../activities/watchdog.js';
import { jittered } from '../src/jitter.js';

const PERIOD_MS = 120_000;

/** What a thousand that begin at the same moment are told. */
const thousand = <T>(told: () => T): T[] => Array.from({ length: 1_000 }, told);

test('a period is up to a tenth shorter by chance, and never longer', () => {
  const periods = thousand(() => jittered(PERIOD_MS));
  expect(Math.max(...periods)).toBeLessThanOrEqual(PERIOD_MS);
  expect(Math.min(...periods)).toBeGreaterThanOrEqual(PERIOD_MS * 0.9);
  expect(new Set(periods).size).toBeGreaterThan(100);
});

test('checks of agents that were well at the same moment do not come at the same moment', () => {
  const delays = thousand(() => unchanged(PERIOD_MS).nextRetryDelay);
  expect(new Set(delays).size).toBeGreaterThan(100);
});
