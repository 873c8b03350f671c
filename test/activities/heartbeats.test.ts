import { setTimeout as delay } from 'node:timers/promises';
import { msToNumber } from '@temporalio/common/lib/time.js';
import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { heartbeating } from '../../activities/docker-activity.js';
import * as retries from '../../workflows/retries.js';

const SECOND = 1_000;

/** The heartbeat timeouts by activity option name, in milliseconds. */
const TIMEOUTS = Object.entries(retries).flatMap(([name, options]) => {
  const timeout = 'heartbeatTimeout' in options ? options.heartbeatTimeout : undefined;
  return timeout === undefined ? [] : [[name, msToNumber(timeout)] as const];
});

async function beats(heartbeatTimeoutMs: number | undefined, forMs: number): Promise<number> {
  const environment = new MockActivityEnvironment(
    heartbeatTimeoutMs === undefined ? {} : { heartbeatTimeoutMs },
  );
  let count = 0;
  environment.on('heartbeat', () => count++);
  await environment.run(() => heartbeating(() => delay(forMs)));
  return count;
}

test('an activity heartbeats at the interval that its timeout requires', async () => {
  const seldom = await beats(2_000, SECOND);
  expect(seldom).toBeGreaterThanOrEqual(1);
  expect(seldom).toBeLessThanOrEqual(2);
  expect(await beats(250, SECOND)).toBeGreaterThan(8);
  expect(await beats(undefined, SECOND)).toBe(0);
});

test('a thousand degraded agents cause fewer than fifty heartbeats a second', () => {
  const timeouts = Object.fromEntries(TIMEOUTS);
  expect(1_000 / ((timeouts.degradedWatch ?? 0) / SECOND / 5)).toBeLessThan(50);
});

test.each(TIMEOUTS)(
  'the option %s detects a killed worker within two minutes',
  (_name, timeoutMs) => {
    expect(timeoutMs).toBeGreaterThanOrEqual(10 * SECOND);
    expect(timeoutMs).toBeLessThanOrEqual(120 * SECOND);
  },
);

test.each(
  TIMEOUTS.filter(([name]) => {
    const options: object = retries[name as keyof typeof retries]; // a key of this module
    return 'cancellationType' in options && options.cancellationType !== 'TRY_CANCEL';
  }),
)(
  'an activity with the option %s notices its cancellation within 2 s, as the workflow waits for it',
  (_name, timeoutMs) => {
    expect(timeoutMs / 5).toBeLessThanOrEqual(2 * SECOND);
  },
);
