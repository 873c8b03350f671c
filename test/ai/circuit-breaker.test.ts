import { beforeEach, describe, expect, test } from 'vitest';
import { CircuitBreaker } from '../../src/ai/circuit-breaker.js';
import { ProviderError, type ProviderFailure } from '../../src/ai/provider-error.js';

const LUNA = { provider: 'openai', model: 'gpt-6-luna' } as const;
const SOL = { provider: 'openai', model: 'gpt-6.1-sol' } as const;
const ELSEWHERE = { provider: 'openrouter', model: 'gpt-6-luna' } as const;
const SECOND = 1_000;

let now: number;
let circuit: CircuitBreaker;

beforeEach(() => {
  now = 1_000_000;
  circuit = new CircuitBreaker(() => now);
});

const fail = (
  target: typeof LUNA | typeof SOL,
  times: number,
  failure: ProviderFailure = 'overloaded',
  retryAfterMs?: number,
) => {
  for (let n = 0; n < times; n++) {
    circuit.probing(target);
    circuit.failed(target, new ProviderError('openai', failure, 500, retryAfterMs));
  }
};

describe('who keeps failing', () => {
  test('is skipped after three failures in a row, and nobody else is', () => {
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA)).toBe(false);
    fail(LUNA, 1);
    expect([LUNA, SOL, ELSEWHERE].map((target) => circuit.isOpen(target))).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('is not skipped when an answer came in between', () => {
    fail(LUNA, 2);
    circuit.succeeded(LUNA);
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA)).toBe(false);
  });

  test('is tried again by one call after half a minute', () => {
    fail(LUNA, 3);
    now += 30 * SECOND - 1;
    expect(circuit.isOpen(LUNA)).toBe(true);
    now += 1;
    expect(circuit.isOpen(LUNA)).toBe(false);
    circuit.probing(LUNA);
    expect(circuit.isOpen(LUNA)).toBe(true);
  });

  test('is asked by all again once it has answered', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    circuit.probing(LUNA);
    circuit.succeeded(LUNA);
    expect(circuit.isOpen(LUNA)).toBe(false);
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA)).toBe(false);
  });

  test('is skipped anew when the one that tried fails too', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    fail(LUNA, 1);
    expect(circuit.isOpen(LUNA)).toBe(true);
    now += 30 * SECOND;
    expect(circuit.isOpen(LUNA)).toBe(false);
  });

  test('is tried by another when the one that tried never came back', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    circuit.probing(LUNA);
    now += 30 * SECOND;
    expect(circuit.isOpen(LUNA)).toBe(false);
  });
});

test.each(['bad_key', 'unreachable'] as const)('%s is of the whole provider', (failure) => {
  fail(LUNA, 3, failure);
  expect([circuit.isOpen(SOL), circuit.isOpen(ELSEWHERE)]).toEqual([true, false]);
  now += 30 * SECOND;
  circuit.probing(SOL);
  circuit.succeeded(SOL);
  expect(circuit.isOpen(LUNA)).toBe(false);
});

test.each(['too_long', 'refused', 'bad_request'] as const)(
  '%s says nothing of who was asked',
  (failure) => {
    fail(LUNA, 10, failure, 60 * SECOND);
    expect(circuit.isOpen(LUNA)).toBe(false);
  },
);

describe('Retry-After', () => {
  test('is waited for from the first failure on', () => {
    fail(LUNA, 1, 'rate_limited', 90 * SECOND);
    now += 90 * SECOND - 1;
    expect([circuit.isOpen(LUNA), circuit.isOpen(SOL)]).toEqual([true, false]);
    now += 1;
    expect(circuit.isOpen(LUNA)).toBe(false);
  });

  test('is believed up to five minutes', () => {
    fail(LUNA, 1, 'rate_limited', 3_600 * SECOND);
    now += 300 * SECOND;
    expect(circuit.isOpen(LUNA)).toBe(false);
  });

  test('does not shorten the pause of one that keeps failing', () => {
    fail(LUNA, 3, 'rate_limited', SECOND);
    now += 2 * SECOND;
    expect(circuit.isOpen(LUNA)).toBe(true);
  });

  test('of zero skips nobody', () => {
    fail(LUNA, 1, 'rate_limited', 0);
    expect(circuit.isOpen(LUNA)).toBe(false);
  });

  test('is not cut short by who asks all the same', () => {
    fail(LUNA, 1, 'rate_limited', 120 * SECOND);
    circuit.probing(LUNA);
    now += 119 * SECOND;
    expect(circuit.isOpen(LUNA)).toBe(true);
  });
});
