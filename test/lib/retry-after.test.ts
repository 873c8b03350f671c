import { expect, test } from 'vitest';
import { retryAfterMs } from '../../src/lib/retry-after.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const wait = (value: string) => retryAfterMs(new Headers({ 'retry-after': value }), NOW);

test.each([
  ['0', 0],
  ['12', 12_000],
  ['1.5', 1_500],
  ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
])('reads Retry-After %j as a wait of %i ms', (value, ms) => {
  expect(wait(value)).toBe(ms);
});

test('limits the wait for a provider to ten minutes', () => {
  expect(wait('86400')).toBe(600_000);
  expect(wait('9'.repeat(400))).toBe(600_000);
  expect(wait('Fri, 02 Jan 2026 00:00:00 GMT')).toBe(600_000);
});

test('reads a date in the past as no wait', () => {
  expect(wait('Wed, 31 Dec 2025 00:00:00 GMT')).toBe(0);
});

test('returns undefined if Retry-After is missing or unreadable', () => {
  expect(retryAfterMs(new Headers())).toBeUndefined();
  expect(wait('')).toBeUndefined();
  expect(wait('in a while')).toBeUndefined();
});
