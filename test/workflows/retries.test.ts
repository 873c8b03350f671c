import { msToNumber, type Duration } from '@temporalio/common/lib/time.js';
import { expect, test } from 'vitest';
import { ANSWER_TIMEOUT_MS } from '../../src/platform/database/database.js';
import * as retries from '../../workflows/retries.js';

const ms = (duration: Duration | undefined): number => msToNumber(duration ?? 0);

test('an attempt to write something down is not given up before the database has', () => {
  for (const { startToCloseTimeout } of [retries.records, retries.recordsAnywhere]) {
    expect(ms(startToCloseTimeout)).toBeGreaterThan(ANSWER_TIMEOUT_MS);
  }
  // So long a worker that reaches Temporal alone holds a supervisor at most.
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
] as const)('%s, which somebody waits for, goes before what nobody waits for', (step) => {
  const { priority, heartbeatTimeout } = retries[step];
  expect(priority).toEqual(retries.ASKED_FOR);
  // Nor does it wait for a worker that was killed.
  expect(ms(heartbeatTimeout)).toBe(10_000);
});

test.each(['endlessDockerCall', 'endlessAgentStart', 'look', 'healthWatch'] as const)(
  '%s, which nobody waits for, goes after that, and on for as long as Docker is away',
  (step) => {
    const options: (typeof retries)['look'] = retries[step];
    expect(options.priority).toBeUndefined();
    expect(options.retry?.maximumAttempts).toBeUndefined();
    expect(options.scheduleToCloseTimeout).toBeUndefined();
  },
);
