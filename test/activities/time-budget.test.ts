import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { MockActivityEnvironment } from '@temporalio/testing';
import { describe, expect, test } from 'vitest';
import { dockerActivity, dockerCalls } from '../../activities/docker-activity.js';
import { DockerUnavailableError } from '../../src/containers/container-errors.js';
import { Turns } from '../../src/turns.js';
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
      await delay(1_000); // its turn
      await withinBudget('Copying', 20 * MINUTES, () => delay(100));
    }),
  );
  expect(told()).toBeGreaterThanOrEqual(5 * MINUTES + 90);
  expect(told()).toBeLessThan(5 * MINUTES + 950);
});

test('a cancellation stays one', async () => {
  const { environment } = attempt(0);
  const running = environment.run(() => withinBudget('Copying', MINUTES, untilAborted));
  environment.cancel();
  await expect(running).rejects.toMatchObject({ name: 'CancelledFailure' });
});

describe('a short call to a Docker that hangs', () => {
  const agent = { agentId: 'a', userId: 'ada', host: 'local' };
  const { stop } = dockerCalls(new Turns(1), {
    async stop(_: typeof agent) {
      await delay(100);
      throw new DockerUnavailableError('The container engine did not answer');
    },
  });
  const hanging = (usedMs: number, maximumAttempts: number) =>
    new MockActivityEnvironment({
      heartbeatDetails: { usedMs },
      retryPolicy: { maximumAttempts },
    }).run(() => stop(agent));

  test('is tried again while there is time', async () => {
    await expect(hanging(4 * MINUTES, 35)).rejects.toMatchObject({ nonRetryable: false });
  });

  test('has failed after five minutes of all attempts, in the middle of one too', async () => {
    for (const usedMs of [5 * MINUTES - 50, 6 * MINUTES]) {
      await expect(hanging(usedMs, 35)).rejects.toMatchObject({
        message: 'What Docker was asked for took longer than 5 minutes',
        nonRetryable: true,
      });
    }
  });

  test('goes on for ever where that is what it is to do', async () => {
    await expect(hanging(60 * MINUTES, 0)).rejects.toMatchObject({ nonRetryable: false });
  });
});
