import { setTimeout as delay } from 'node:timers/promises';
import { msToNumber } from '@temporalio/common/lib/time.js';
import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { heartbeating } from '../../activities/docker-activity.js';
import * as retries from '../../workflows/retries.js';

const SECOND = 1_000;

/** Of each activity's options, by name, those that have one. */
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

test('come as often as their timeout asks for, and no more often', async () => {
  const seldom = await beats(2_000, SECOND);
  expect(seldom).toBeGreaterThanOrEqual(1);
  expect(seldom).toBeLessThanOrEqual(2);
  expect(await beats(250, SECOND)).toBeGreaterThan(8);
  expect(await beats(undefined, SECOND)).toBe(0);
});

test('of a thousand agents that stay degraded are fifty a second at most', () => {
  const timeouts = Object.fromEntries(TIMEOUTS);
  expect(1_000 / ((timeouts.degradedWatch ?? 0) / SECOND / 5)).toBeLessThan(50);
});

test.each(TIMEOUTS)('%s misses a killed worker for two minutes at most', (_name, timeoutMs) => {
  expect(timeoutMs).toBeGreaterThanOrEqual(10 * SECOND);
  expect(timeoutMs).toBeLessThanOrEqual(120 * SECOND);
});

test.each(
  TIMEOUTS.filter(([name]) => {
    const options: object = retries[name as keyof typeof retries]; // a name of this very module
    return 'cancellationType' in options && options.cancellationType !== 'TRY_CANCEL';
  }),
)('%s hears within 2 s that it is cancelled, since that is waited for', (_name, timeoutMs) => {
  expect(timeoutMs / 5).toBeLessThanOrEqual(2 * SECOND);
});
