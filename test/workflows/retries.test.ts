import { msToNumber, type Duration } from '@temporalio/common/lib/time.js';
import type { ActivityOptions } from '@temporalio/common';
import { expect, test } from 'vitest';
import { ANSWER_TIMEOUT_MS } from '../../src/platform/database/database.js';
import * as retries from '../../workflows/retries.js';

const ms = (duration: Duration | undefined): number => msToNumber(duration ?? 0);

test('an attempt to write a record lasts longer than the database timeout', () => {
  for (const { startToCloseTimeout } of [retries.records, retries.recordsAnywhere]) {
    expect(ms(startToCloseTimeout)).toBeGreaterThan(ANSWER_TIMEOUT_MS);
  }
  // The longest time that a worker without a database connection may hold up a supervisor.
  expect(ms(retries.records.scheduleToCloseTimeout)).toBe(20_000);
  expect(retries.records.retry?.maximumAttempts).toBeLessThan(10);
});

test.each([
  'dockerCall',
  'agentStart',
  'imageCall',
  'readinessWait',
  'removal',
  'compensation',
  'volumeCopy',
] as const)('%s, which a caller waits for, has priority over background steps', (step) => {
  const { priority, heartbeatTimeout } = retries[step];
  expect(priority).toEqual(retries.REQUESTED);
  // A killed worker does not hold up the step either.
  expect(ms(heartbeatTimeout)).toBe(10_000);
});

test.each(['endlessDockerCall', 'endlessAgentStart', 'observation', 'healthWatch'] as const)(
  '%s, a background step, has no priority and is retried for as long as Docker is unavailable',
  (step) => {
    const options: (typeof retries)['observation'] = retries[step];
    expect(options.priority).toBeUndefined();
    expect(options.retry?.maximumAttempts).toBeUndefined();
    expect(options.scheduleToCloseTimeout).toBeUndefined();
  },
);

test('a killed worker delays a retried step by at most two minutes', () => {
  const options: [string, object][] = Object.entries(retries);
  const held = options.flatMap(([name, each]) => {
    const { heartbeatTimeout, retry, startToCloseTimeout }: ActivityOptions = each;
    if (startToCloseTimeout === undefined || retry?.maximumAttempts === 1) return [];
    return ms(heartbeatTimeout ?? startToCloseTimeout) <= 120_000 ? [] : [name];
  });
  expect(options.length).toBeGreaterThan(20);
  expect(held).toEqual([]);
});
