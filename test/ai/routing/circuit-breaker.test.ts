import { beforeEach, describe, expect, test } from 'vitest';
import { CircuitBreaker } from '../../../src/ai/routing/circuit-breaker.js';
import { ProviderError, type ProviderFailure } from '../../../src/ai/completion/provider-error.js';

const LUNA = { provider: 'openai', model: 'gpt-6-luna' } as const;
const SOL = { provider: 'openai', model: 'gpt-6.1-sol' } as const;
const ELSEWHERE = { provider: 'openrouter', model: 'gpt-6-luna' } as const;
const SECOND = 1_000;
const ADA = 'ada';
const BOB = 'bob';
const CY = 'cy';
const DAN = 'dan';

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
  owner = ADA,
  status: number | undefined = failure === 'unreachable' ? undefined : 500,
) => {
  for (let n = 0; n < times; n++) {
    circuit.probing(target, owner);
    circuit.failed(target, owner, new ProviderError('openai', failure, status, retryAfterMs));
  }
};

describe('who keeps failing', () => {
  test('is skipped after three failures in a row, and nobody else is', () => {
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
    fail(LUNA, 1);
    expect([LUNA, SOL, ELSEWHERE].map((target) => circuit.isOpen(target, ADA))).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('is not skipped when an answer came in between', () => {
    fail(LUNA, 2);
    circuit.succeeded(LUNA, ADA);
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('is tried again by one call after half a minute', () => {
    fail(LUNA, 3);
    now += 30 * SECOND - 1;
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
    now += 1;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
    circuit.probing(LUNA, ADA);
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
  });

  test('is asked by all again once it has answered', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    circuit.probing(LUNA, ADA);
    circuit.succeeded(LUNA, ADA);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('is skipped anew when the one that tried fails too', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    fail(LUNA, 1);
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
    now += 30 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('is tried by another when the one that tried never came back', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    circuit.probing(LUNA, ADA);
    now += 30 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });
});

describe('what fails for one owner alone', () => {
  const attack = { tags: 'attack' };

  test('however often, is skipped for that one and for nobody else', attack, () => {
    fail(LUNA, 10);
    expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(LUNA, BOB)]).toEqual([true, false]);
    circuit.succeeded(LUNA, BOB);
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
  });

  test('is skipped for everybody once it fails for another one, too', () => {
    fail(LUNA, 2);
    fail(LUNA, 1, 'overloaded', undefined, BOB);
    expect(circuit.isOpen(LUNA, CY)).toBe(true);
    now += 30 * SECOND;
    circuit.probing(LUNA, CY);
    expect(circuit.isOpen(LUNA, BOB)).toBe(true);
  });

  test(
    'does not go on to be skipped by everybody, when it once failed for another one, too',
    attack,
    () => {
      fail(LUNA, 2);
      fail(LUNA, 1, 'overloaded', undefined, BOB);
      now += 30 * SECOND;
      fail(LUNA, 5);
      circuit.probing(LUNA, ADA);
      expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(LUNA, CY)]).toEqual([true, false]);
    },
  );

  test('stays skipped for everybody when a call that was under way fails for a third', () => {
    fail(LUNA, 2);
    fail(LUNA, 1, 'overloaded', undefined, BOB);
    circuit.failed(LUNA, CY, new ProviderError('openai', 'overloaded', 500));
    expect(circuit.isOpen(LUNA, DAN)).toBe(true);
    now += 30 * SECOND;
    expect(circuit.isOpen(LUNA, DAN)).toBe(false);
  });

  test('is tried by one at a time, also when the one that tried fails', () => {
    fail(LUNA, 2);
    fail(LUNA, 1, 'overloaded', undefined, BOB);
    now += 30 * SECOND;
    fail(LUNA, 1, 'overloaded', undefined, BOB);
    expect(circuit.isOpen(LUNA, CY)).toBe(false);
    circuit.probing(LUNA, CY);
    expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(LUNA, DAN)]).toEqual([true, true]);
    circuit.failed(LUNA, CY, new ProviderError('openai', 'overloaded', 500));
    expect(circuit.isOpen(LUNA, DAN)).toBe(true);
  });

  test('and asks for a pause is left in peace by that one, and by nobody else', attack, () => {
    for (let n = 0; n < 10; n++) fail(LUNA, 1, 'rate_limited', 90 * SECOND);
    expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(LUNA, BOB)]).toEqual([true, false]);
  });

  test('and breaks off in the middle is one model’s matter for everybody', attack, () => {
    fail(LUNA, 2, 'unreachable', undefined, ADA, 200);
    fail(LUNA, 1, 'unreachable', undefined, BOB, 200);
    expect([circuit.isOpen(LUNA, CY), circuit.isOpen(SOL, CY)]).toEqual([true, false]);
  });
});

test.each(['bad_key', 'unreachable'] as const)('%s is of the whole provider', (failure) => {
  fail(LUNA, 3, failure);
  expect([circuit.isOpen(SOL, ADA), circuit.isOpen(ELSEWHERE, ADA)]).toEqual([true, false]);
  now += 30 * SECOND;
  circuit.probing(SOL, ADA);
  circuit.succeeded(SOL, ADA);
  expect(circuit.isOpen(LUNA, ADA)).toBe(false);
});

test.each([402, 403])('a key that is refused with %i is one model’s matter', (status) => {
  fail(LUNA, 3, 'bad_key', undefined, ADA, status);
  expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(SOL, ADA)]).toEqual([true, false]);
});

test.each(['too_long', 'refused', 'bad_request'] as const)(
  '%s says nothing of who was asked',
  (failure) => {
    fail(LUNA, 10, failure, 60 * SECOND);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  },
);

describe('Retry-After', () => {
  test('is waited for from the first failure on', () => {
    fail(LUNA, 1, 'rate_limited', 90 * SECOND);
    now += 90 * SECOND - 1;
    expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(SOL, ADA)]).toEqual([true, false]);
    now += 1;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('is everybody’s matter when two are told, for half a minute at most', () => {
    fail(LUNA, 1, 'rate_limited', 10 * SECOND);
    fail(LUNA, 1, 'rate_limited', 10 * SECOND, BOB);
    expect([circuit.isOpen(LUNA, CY), circuit.isOpen(SOL, CY)]).toEqual([true, false]);
    now += 10 * SECOND;
    expect(circuit.isOpen(LUNA, CY)).toBe(false);
    fail(LUNA, 1, 'rate_limited', 3_600 * SECOND);
    fail(LUNA, 1, 'rate_limited', 3_600 * SECOND, BOB);
    now += 30 * SECOND;
    expect([circuit.isOpen(LUNA, BOB), circuit.isOpen(LUNA, CY)]).toEqual([true, false]);
  });

  test('is believed up to five minutes', () => {
    fail(LUNA, 1, 'rate_limited', 3_600 * SECOND);
    now += 300 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('does not shorten the pause of one that keeps failing', () => {
    fail(LUNA, 3, 'rate_limited', SECOND);
    now += 2 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
  });

  test('of zero skips nobody', () => {
    fail(LUNA, 1, 'rate_limited', 0);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('is not cut short by who asks all the same', () => {
    fail(LUNA, 1, 'rate_limited', 120 * SECOND);
    circuit.probing(LUNA, ADA);
    now += 119 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
  });
});
