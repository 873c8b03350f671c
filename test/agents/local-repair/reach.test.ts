import { expect, test } from 'vitest';
import { ControlPlaneReach } from '../../../src/agents/local-repair/control-plane-reach.js';
import { LOCAL_REPAIR_TIMES } from '../../../worker/local-repair.js';
import { keptLog } from '../../support/platform-environment.js';

/** Between two calls; as long is waited for one that is not answered or refused at once. */
const EVERY_MS = 50;

/** For how long somebody is away, as it is known before each call; after it, the calls are over. */
async function awayBefore(
  answers: readonly ('answered' | 'refused' | 'not answered')[],
): Promise<number[]> {
  const stop = new AbortController();
  const known: number[] = [];
  const reach: ControlPlaneReach = new ControlPlaneReach(
    {
      'who is always there': () => Promise.resolve(),
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

test('one of them counts as away at the third refusal in a row, from the last answer on', async () => {
  const known = await awayBefore(['answered', 'refused', 'refused', 'refused', 'refused']);
  expect(known.slice(0, 4)).toEqual([0, 0, 0, 0]);
  // Three pauses between refusals, the shortest that there are; a timer is up to 1 ms early.
  expect(known[4]).toBeGreaterThan(3 * (EVERY_MS * 0.4 * 0.9 - 1));
  expect(known[5]).toBeGreaterThan(known[4] ?? 0);
});

test('who does not answer at all is away as well', async () => {
  const known = await awayBefore(['answered', 'not answered', 'not answered', 'not answered']);
  expect(known.slice(0, 4)).toEqual([0, 0, 0, 0]);
  // Since before the last call that was answered: what happens from then on is not known.
  expect(known[4]).toBeGreaterThan(3 * EVERY_MS);
});

test('it is there again with its first answer', async () => {
  const known = await awayBefore(['refused', 'refused', 'refused', 'answered', 'refused']);
  expect(known[3]).toBeGreaterThan(0);
  expect(known.slice(4)).toEqual([0, 0]);
});

test('a host repairs by itself after 30 s, and as a supervisor does', () => {
  const { ask, away, grace, pause } = LOCAL_REPAIR_TIMES;
  expect({ away, pause, grace }).toEqual({ away: 30_000, pause: 5_000, grace: 30_000 });
  // Three calls in a row are refused, or not answered, before.
  expect(ask).toBeLessThan(away / 3);
});
