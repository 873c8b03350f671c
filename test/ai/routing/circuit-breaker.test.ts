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

describe('a model that keeps failing', () => {
  test('skips a model after three failures in a row, and no other model', () => {
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
    fail(LUNA, 1);
    expect([LUNA, SOL, ELSEWHERE].map((target) => circuit.isOpen(target, ADA))).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('does not skip a model that has answered between failures', () => {
    fail(LUNA, 2);
    circuit.succeeded(LUNA, ADA);
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('probes a skipped model with one call after 30 s', () => {
    fail(LUNA, 3);
    now += 30 * SECOND - 1;
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
    now += 1;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
    circuit.probing(LUNA, ADA);
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
  });

  test('uses a model for all calls once the probe has succeeded', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    circuit.probing(LUNA, ADA);
    circuit.succeeded(LUNA, ADA);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
    fail(LUNA, 2);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('skips a model for another 30 s if the probe fails', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    fail(LUNA, 1);
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
    now += 30 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('starts a new probe after 30 s if the last one never ended', () => {
    fail(LUNA, 3);
    now += 30 * SECOND;
    circuit.probing(LUNA, ADA);
    now += 30 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });
});

describe('a model that fails for one owner only', () => {
  const attack = { tags: 'attack' };

  test('skips a model that fails often for one owner only for that owner', attack, () => {
    fail(LUNA, 10);
    expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(LUNA, BOB)]).toEqual([true, false]);
    circuit.succeeded(LUNA, BOB);
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
  });

  test('skips a model for all owners once it fails for a second owner', () => {
    fail(LUNA, 2);
    fail(LUNA, 1, 'overloaded', undefined, BOB);
    expect(circuit.isOpen(LUNA, CY)).toBe(true);
    now += 30 * SECOND;
    circuit.probing(LUNA, CY);
    expect(circuit.isOpen(LUNA, BOB)).toBe(true);
  });

  test("stops skipping a model for all owners if only one owner's calls fail again", attack, () => {
    fail(LUNA, 2);
    fail(LUNA, 1, 'overloaded', undefined, BOB);
    now += 30 * SECOND;
    fail(LUNA, 5);
    circuit.probing(LUNA, ADA);
    expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(LUNA, CY)]).toEqual([true, false]);
  });

  test('still skips a model for all owners when a call in flight fails for a third owner', () => {
    fail(LUNA, 2);
    fail(LUNA, 1, 'overloaded', undefined, BOB);
    circuit.failed(LUNA, CY, new ProviderError('openai', 'overloaded', 500));
    expect(circuit.isOpen(LUNA, DAN)).toBe(true);
    now += 30 * SECOND;
    expect(circuit.isOpen(LUNA, DAN)).toBe(false);
  });

  test('probes a model skipped for all owners with one call at a time, also after a failed probe', () => {
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

  test("applies a provider's Retry-After only to the owner who received it", attack, () => {
    for (let n = 0; n < 10; n++) fail(LUNA, 1, 'rate_limited', 90 * SECOND);
    expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(LUNA, BOB)]).toEqual([true, false]);
  });

  test(
    'streams that break off for several owners skip the model for all, but no other model',
    attack,
    () => {
      fail(LUNA, 2, 'unreachable', undefined, ADA, 200);
      fail(LUNA, 1, 'unreachable', undefined, BOB, 200);
      expect([circuit.isOpen(LUNA, CY), circuit.isOpen(SOL, CY)]).toEqual([true, false]);
    },
  );
});

test.each(['bad_key', 'unreachable'] as const)('%s skips all models of the provider', (failure) => {
  fail(LUNA, 3, failure);
  expect([circuit.isOpen(SOL, ADA), circuit.isOpen(ELSEWHERE, ADA)]).toEqual([true, false]);
  now += 30 * SECOND;
  circuit.probing(SOL, ADA);
  circuit.succeeded(SOL, ADA);
  expect(circuit.isOpen(LUNA, ADA)).toBe(false);
});

test.each([402, 403])('a key refused with %i skips only that model', (status) => {
  fail(LUNA, 3, 'bad_key', undefined, ADA, status);
  expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(SOL, ADA)]).toEqual([true, false]);
});

test.each(['too_long', 'refused', 'bad_request'] as const)(
  '%s does not count as a failure of the provider',
  (failure) => {
    fail(LUNA, 10, failure, 60 * SECOND);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  },
);

describe('Retry-After', () => {
  test('Retry-After is applied from the first failure on', () => {
    fail(LUNA, 1, 'rate_limited', 90 * SECOND);
    now += 90 * SECOND - 1;
    expect([circuit.isOpen(LUNA, ADA), circuit.isOpen(SOL, ADA)]).toEqual([true, false]);
    now += 1;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('Retry-After applies to all owners for 30 s at most once two owners received it', () => {
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

  test('Retry-After is limited to five minutes', () => {
    fail(LUNA, 1, 'rate_limited', 3_600 * SECOND);
    now += 300 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('Retry-After does not shorten the pause after repeated failures', () => {
    fail(LUNA, 3, 'rate_limited', SECOND);
    now += 2 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
  });

  test('Retry-After of zero skips no model', () => {
    fail(LUNA, 1, 'rate_limited', 0);
    expect(circuit.isOpen(LUNA, ADA)).toBe(false);
  });

  test('a probe that ignores Retry-After does not shorten the pause', () => {
    fail(LUNA, 1, 'rate_limited', 120 * SECOND);
    circuit.probing(LUNA, ADA);
    now += 119 * SECOND;
    expect(circuit.isOpen(LUNA, ADA)).toBe(true);
  });
});
