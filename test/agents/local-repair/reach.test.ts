import { expect, test } from 'vitest';
import { ControlPlaneReach } from '../../../src/agents/local-repair/control-plane-reach.js';
import { LOCAL_REPAIR_TIMES } from '../../../worker/local-repair.js';
import { keptLog } from '../../support/platform-environment.js';

/** Milliseconds between two calls, and the time limit of a call. */
const EVERY_MS = 50;

/** Returns the outage in milliseconds that is known before each call. */
async function awayBefore(
  answers: readonly ('answered' | 'refused' | 'not answered')[],
): Promise<number[]> {
  const stop = new AbortController();
  const known: number[] = [];
  const reach: ControlPlaneReach = new ControlPlaneReach(
    {
      'always reachable': () => Promise.resolve(),
      somebody: () => {
        const answer = answers[known.length];
        known.push(reach.awayForMs);
        if (answer === undefined) stop.abort();
        if (answer === 'not answered') return new Promise(() => undefined);
        return answer === 'answered' ? Promise.resolve() : Promise.reject(new Error(answer));
      },
    },
    EVERY_MS,
    keptLog().log,
  );
  await reach.watch(stop.signal);
  return known;
}

test('counts a service as unavailable since its last answer after three refusals in a row', async () => {
  const known = await awayBefore(['answered', 'refused', 'refused', 'refused', 'refused']);
  expect(known.slice(0, 4)).toEqual([0, 0, 0, 0]);
  // Three of the shortest pauses between refusals; timers may be 1 ms early.
  expect(known[4]).toBeGreaterThan(3 * (EVERY_MS * 0.4 * 0.9 - 1));
  expect(known[5]).toBeGreaterThan(known[4] ?? 0);
});

test('counts a service as unavailable that never answers', async () => {
  const known = await awayBefore(['answered', 'not answered', 'not answered', 'not answered']);
  expect(known.slice(0, 4)).toEqual([0, 0, 0, 0]);
  // Counted from before the last answered call, since the state after it is unknown.
  expect(known[4]).toBeGreaterThan(3 * EVERY_MS);
});

test('counts a service as available after one answer', async () => {
  const known = await awayBefore(['refused', 'refused', 'refused', 'answered', 'refused']);
  expect(known[3]).toBeGreaterThan(0);
  expect(known.slice(4)).toEqual([0, 0]);
});

test('repairs locally after 30 s, with the pauses of a supervisor', () => {
  const { probe: ask, away, grace, pause } = LOCAL_REPAIR_TIMES;
  expect({ away, pause, grace }).toEqual({ away: 30_000, pause: 5_000, grace: 30_000 });
  // Three calls in a row fail or time out before that.
  expect(ask).toBeLessThan(away / 3);
});
