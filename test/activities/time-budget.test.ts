import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { describe, expect, test } from 'vitest';
import { createContainerActivities } from '../../activities/containers.js';
import {
  DOCKERS_CALL,
  dockerActivity,
  dockerCalls,
  REFUSALS,
} from '../../activities/docker-activity.js';
import { createReleaseActivities } from '../../activities/releases.js';
import { createWatchdogActivities } from '../../activities/watchdog.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';
import {
  DockerRefusedError,
  DockerUnavailableError,
} from '../../src/docker/containers/container-errors.js';
import { FairLimiter } from '../../src/lib/fair-limiter.js';
import {
  LastingRefusalError,
  TimeBudgetSpentError,
  withinBudget,
} from '../../activities/time-budget.js';

const MINUTES = 60_000;

/** The SDK warns of each attempt that fails. */
const QUIET = { logger: new DefaultLogger('ERROR', () => undefined) };

/** Returns an attempt at a step after earlier attempts used some of its time budgets. */
function attempt(usedMs: Readonly<Record<string, number>>) {
  const environment = new MockActivityEnvironment({ heartbeatDetails: { usedMs } }, QUIET);
  let reported = usedMs;
  environment.on('heartbeat', (details: { usedMs: typeof usedMs }) => (reported = details.usedMs));
  return { environment, reported: (what: string) => reported[what] };
}

const untilAborted = (signal: AbortSignal) =>
  once(signal, 'abort').then(() => signal.throwIfAborted());

test('a step fails once all its attempts together exceed the time budget', async () => {
  const { environment } = attempt({ Pulling: 20 * MINUTES - 50 });
  const work = () => withinBudget('Pulling', 20 * MINUTES, untilAborted);
  await expect(environment.run(work)).rejects.toThrow('Pulling took longer than 20 minutes');
});

test('an attempt with a spent budget does nothing and fails permanently', async () => {
  const { environment } = attempt({ Pulling: 20 * MINUTES });
  let begun = false;
  const work = () => Promise.resolve((begun = true));
  const step = () => dockerActivity(() => withinBudget('Pulling', 20 * MINUTES, work));
  await expect(environment.run(step)).rejects.toMatchObject({
    type: TimeBudgetSpentError.name,
    nonRetryable: true,
  });
  expect(begun).toBe(false);
});

test('hands the next attempt the time used, without the time spent waiting for a turn', async () => {
  const { environment, reported } = attempt({ Copying: 5 * MINUTES });
  await environment.run(() =>
    dockerActivity(async () => {
      await delay(3_000); // the wait for its turn
      await withinBudget('Copying', 20 * MINUTES, () => delay(100));
    }),
  );
  expect(reported('Copying')).toBeGreaterThanOrEqual(5 * MINUTES + 90);
  expect(reported('Copying')).toBeLessThan(5 * MINUTES + 2_900);
});

test('successive parts of one attempt have separate budgets', async () => {
  const { environment, reported } = attempt({ Looking: 1 * MINUTES, Pulling: 19 * MINUTES });
  await environment.run(async () => {
    await withinBudget('Looking', 5 * MINUTES, () => delay(50));
    await withinBudget('Pulling', 20 * MINUTES, () => delay(100));
  });
  expect(reported('Looking')).toBeGreaterThanOrEqual(1 * MINUTES + 40);
  expect(reported('Pulling')).toBeGreaterThanOrEqual(19 * MINUTES + 90);
  expect(reported('Looking')).toBeLessThan(10 * MINUTES);
});

describe('refusals by Docker', () => {
  const agent = { agentId: 'a', userId: 'ada', host: 'local' };
  const refuses = () => Promise.reject(new DockerRefusedError(500, 'it is broken'));
  const isAway = () => Promise.reject(new DockerUnavailableError('It did not answer'));
  const limits = { checkIntervalMs: 1_000, degradedCheckIntervalMs: 1_000 };

  /** Returns an attempt at a step without a deadline, after this many refusals. */
  function stepOf(workflowType: string, refusals: number, work: () => Promise<undefined>) {
    const counted = { [REFUSALS]: refusals };
    const environment = new MockActivityEnvironment(
      { workflowType, heartbeatDetails: { usedMs: counted }, retryPolicy: {} },
      QUIET,
    );
    let reported: Record<string, number> = counted;
    environment.on(
      'heartbeat',
      (details: { usedMs: typeof reported }) => (reported = details.usedMs),
    );
    const { kill } = dockerCalls(new FairLimiter({ atOnce: 1 }), {
      kill: (_: typeof agent) => work(),
    });
    const containers = { inspect: work };
    const observer = createWatchdogActivities({
      docker: { containers },
      ports: { of: () => Promise.resolve(1) },
      limiters: hostLimiters(1),
      ...limits,
    } as unknown as Parameters<typeof createWatchdogActivities>[0]); // the parts that this test uses
    return {
      kill: () => environment.run(() => kill(agent)),
      observe: () => environment.run(() => observer.observeAgent(agent)),
      reported: () => reported[REFUSALS],
    };
  }

  test('a refusal in a repair is retried and counted over all attempts', async () => {
    const { kill, reported } = stepOf('repairAgent', 3, refuses);
    await expect(kill()).rejects.toMatchObject({ nonRetryable: false });
    expect(reported()).toBe(4);
  });

  test.each(['kill', 'observe'] as const)(
    'repeated refusals in a repair end in a permanent failure: %s',
    async (step) => {
      const last = { type: LastingRefusalError.name, nonRetryable: true };
      await expect(stepOf('repairAgent', 34, refuses)[step]()).rejects.toMatchObject(last);
    },
  );

  test.each(['kill', 'observe'] as const)(
    'an unavailable Docker does not count as a refusal, and the repair waits: %s',
    async (step) => {
      const waiting = stepOf('repairAgent', 34, isAway);
      await expect(waiting[step]()).rejects.not.toMatchObject({ nonRetryable: true });
      expect(waiting.reported()).toBe(34);
    },
  );

  test("repeated refusals of a supervisor's step end in a permanent failure", async () => {
    const { kill } = stepOf('superviseAgent', 34, refuses);
    const last = { type: LastingRefusalError.name, nonRetryable: true };
    await expect(kill()).rejects.toMatchObject(last);
  });

  test('repeated refusals of an observation report the agent as unhealthy with the reason', async () => {
    const { observe } = stepOf('superviseAgent', 34, refuses);
    await expect(observe()).resolves.toMatchObject({
      health: 'unhealthy',
      reason: 'The container engine has refused this step for minutes (DOCKER_REFUSED)',
    });
  });

  test('a success resets the count of refusals', async () => {
    const { observe, reported } = stepOf('superviseAgent', 34, () => Promise.resolve(undefined));
    await expect(observe()).resolves.toMatchObject({ health: 'stopped' });
    expect(reported()).toBeUndefined();
  });
});

test('a cancellation is reported as a cancellation', async () => {
  const { environment } = attempt({});
  const running = environment.run(() => withinBudget('Copying', MINUTES, untilAborted));
  environment.cancel();
  await expect(running).rejects.toMatchObject({ name: 'CancelledFailure' });
});

describe('a short call to a hanging Docker', () => {
  const agent = { agentId: 'a', userId: 'ada', host: 'local' };
  const { stop } = dockerCalls(new FairLimiter({ atOnce: 1 }), {
    async stop(_: typeof agent) {
      await delay(100);
      throw new DockerUnavailableError('The container engine did not answer');
    },
  });
  const hanging = (usedMs: number, maximumAttempts: number) =>
    new MockActivityEnvironment(
      {
        heartbeatDetails: { usedMs: { [DOCKERS_CALL]: usedMs } },
        retryPolicy: { maximumAttempts },
      },
      QUIET,
    ).run(() => stop(agent));

  test('a short call is retried while there is time', async () => {
    await expect(hanging(4 * MINUTES, 35)).rejects.toMatchObject({ nonRetryable: false });
  });

  test('a short call fails permanently after five minutes over all attempts, even in mid-attempt', async () => {
    for (const usedMs of [5 * MINUTES - 50, 6 * MINUTES]) {
      await expect(hanging(usedMs, 35)).rejects.toMatchObject({
        message: 'The Docker call took longer than 5 minutes',
        nonRetryable: true,
      });
    }
  });

  test('each step that a user waits for has a time limit', async () => {
    const hangs = () => Promise.reject(new DockerUnavailableError('It did not answer'));
    const dependencies = {
      docker: {
        containers: { kill: hangs },
        images: { find: hangs, ensure: hangs },
        volumes: { findOwn: hangs },
      },
      specs: {
        imageOf: () => Promise.resolve('image'),
        specOf: () => Promise.resolve(agent),
      },
      releases: { replacementOf: () => Promise.resolve({ volume: 'new', image: 'new' }) },
      limiters: hostLimiters(1),
    } as unknown as Parameters<typeof createReleaseActivities>[0] &
      Parameters<typeof createWatchdogActivities>[0];
    const { ensureImage } = createContainerActivities(dependencies);
    const { findImage, makeVolume } = createReleaseActivities(dependencies);
    const { killGateway } = createWatchdogActivities(dependencies);
    const steps = [
      () => ensureImage(agent),
      () => findImage(agent, 'operation'),
      () => makeVolume(agent, 'operation'),
      () => killGateway(agent),
    ];
    for (const step of steps) {
      const attempt = new MockActivityEnvironment(
        {
          heartbeatDetails: { usedMs: { [DOCKERS_CALL]: 6 * MINUTES } },
          retryPolicy: { maximumAttempts: 35 },
        },
        QUIET,
      );
      await expect(attempt.run(step)).rejects.toMatchObject({ type: TimeBudgetSpentError.name });
    }
  });

  test('a step without a deadline is retried forever', async () => {
    await expect(hanging(60 * MINUTES, 0)).rejects.toMatchObject({ nonRetryable: false });
  });
});

describe('long steps', () => {
  const agent = { agentId: 'a', userId: 'ada', host: 'local' };

  /** Returns the activities on an engine that answers at once, with one turn of each kind. */
  function stepsIn(limiter: FairLimiter) {
    const does = () => Promise.resolve();
    const dependencies = {
      clones: { originalOf: () => Promise.resolve({}), recordCopied: does },
      docker: {
        containers: { inspect: does },
        images: { find: does, ensure: () => Promise.resolve({ version: undefined }) },
        networks: { remove: does },
        volumes: { copy: does, findOwn: does, remove: () => Promise.resolve([]) },
      },
      releases: { replacementOf: () => Promise.resolve({ volume: 'new', copyOf: 'old' }) },
      specs: {
        gatewayOf: () => Promise.resolve({ port: 1, gatewayToken: 'token', hasChannels: false }),
        imageOf: () => Promise.resolve('image'),
        recordImage: does,
        specOf: () => Promise.resolve({ agentId: 'a', volume: 'old' }),
      },
      limiters: { ...hostLimiters(1), calls: limiter, copies: limiter, pulls: limiter },
      volumes: { name: does, of: () => Promise.resolve([]) },
    } as unknown as Parameters<typeof createReleaseActivities>[0]; // the parts that this test uses
    const { awaitReady, copyMemory, ensureImage, removeNetwork } =
      createContainerActivities(dependencies);
    const { makeVolume } = createReleaseActivities(dependencies);
    return {
      start: () => awaitReady(agent),
      pull: () => ensureImage(agent),
      'copy of a parent': () => copyMemory(agent),
      copy: () => makeVolume(agent, 'operation'),
      'short call': () => removeNetwork(agent),
    };
  }

  const counted = (usedMs: Readonly<Record<string, number>>) =>
    new MockActivityEnvironment(
      { heartbeatDetails: { usedMs }, retryPolicy: { maximumAttempts: 35 } },
      QUIET,
    );

  test.each([
    ['start', 'Its start', 6],
    ['pull', 'Pulling its image', 20],
    ['copy of a parent', "Copying its parent's memory", 30],
    ['copy', 'Copying its memory', 30],
  ] as const)('a long step has a time limit over all attempts: %s', async (step, what, minutes) => {
    const last = counted({ [what]: minutes * MINUTES });
    await expect(last.run(stepsIn(new FairLimiter({ atOnce: 1 }))[step])).rejects.toMatchObject({
      message: `${what} took longer than ${minutes} minutes`,
      nonRetryable: true,
    });
  });

  test.each([
    ['pull', 'Pulling its image', 20],
    ['copy of a parent', "Copying its parent's memory", 30],
    ['copy', 'Copying its memory', 30],
    ['short call', DOCKERS_CALL, 5],
  ] as const)(
    'waiting for a turn does not use up the time budget of a %s',
    async (step, what, minutes) => {
      const limiter = new FairLimiter({ atOnce: 1 });
      const held = limiter.run({ owner: 'somebody', isUrgent: true }, () => delay(700));
      const attempt = counted({ [what]: minutes * MINUTES - 400 });
      let usedMs: Readonly<Record<string, number>> = {};
      attempt.on('heartbeat', (details: { usedMs: typeof usedMs }) => (usedMs = details.usedMs));
      await attempt.run(stepsIn(limiter)[step]);
      expect(usedMs[what]).toBeLessThan(minutes * MINUTES);
      await held;
    },
  );
});
