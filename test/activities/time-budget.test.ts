import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { dockerActivity } from '../../activities/docker-activity.js';
import { TimeBudgetSpentError, withinBudget } from '../../activities/time-budget.js';

const MINUTES = 60_000;

/** An attempt at a step, after earlier ones have used some time. */
function attempt(usedMs: number) {
  const environment = new MockActivityEnvironment({ heartbeatDetails: { usedMs } });
  let told = usedMs;
  environment.on('heartbeat', (details: { usedMs: number }) => (told = details.usedMs));
  return { environment, told: () => told };
}

const untilAborted = (signal: AbortSignal) =>
  once(signal, 'abort').then(() => signal.throwIfAborted());

test('a step is given up when all attempts together have taken too long', async () => {
  const { environment } = attempt(20 * MINUTES - 50);
  const work = () => withinBudget('Pulling', 20 * MINUTES, untilAborted);
  await expect(environment.run(work)).rejects.toThrow('Pulling took longer than 20 minutes');
});

test('the attempt after that does nothing, and is the last', async () => {
  const { environment } = attempt(20 * MINUTES);
  let begun = false;
  const work = () => Promise.resolve((begun = true));
  const step = () => dockerActivity(() => withinBudget('Pulling', 20 * MINUTES, work));
  await expect(environment.run(step)).rejects.toMatchObject({
    type: TimeBudgetSpentError.name,
    nonRetryable: true,
  });
  expect(begun).toBe(false);
});

test('the next attempt is told what this one has used, and not how long it waited before', async () => {
  const { environment, told } = attempt(5 * MINUTES);
  await environment.run(() =>
    dockerActivity(async () => {
      await delay(300); // its turn
      await withinBudget('Copying', 20 * MINUTES, () => delay(100));
    }),
  );
  expect(told()).toBeGreaterThanOrEqual(5 * MINUTES + 90);
  expect(told()).toBeLessThan(5 * MINUTES + 250);
});

test('a cancellation stays one', async () => {
  const { environment } = attempt(0);
  const running = environment.run(() => withinBudget('Copying', MINUTES, untilAborted));
  environment.cancel();
  await expect(running).rejects.toMatchObject({ name: 'CancelledFailure' });
});
