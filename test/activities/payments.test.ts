import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { createPaymentActivities } from '../../activities/payments.js';
import { UNCHANGED } from '../../activities/watchdog.js';
import { TableChanges } from '../../src/platform/database/row-changes.js';

const nobody = (): never => {
  throw new Error('unexpected request for a signer');
};

test('a long wait for a payment ends as a retryable failure, so that it does not hold a worker slot', async () => {
  const settled = (_: string, signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  const { awaitPayment } = createPaymentActivities({
    changes: new TableChanges(),
    signers: { of: nobody },
    watch: { settled },
    waitMs: 1,
  });
  const waited = new MockActivityEnvironment().run(awaitPayment, 'cause');
  const failure: unknown = await waited.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ApplicationFailure);
  expect(failure).toMatchObject({ type: UNCHANGED, nextRetryDelay: expect.any(Number) });
});

test('a signer pays for the owner for whom its run was started', async () => {
  const asked: unknown[] = [];
  const of = (...args: unknown[]): never => {
    asked.push(args);
    throw new Error('the arguments are recorded');
  };
  const { payAll } = createPaymentActivities({
    changes: new TableChanges(),
    signers: { of },
    watch: { settled: nobody },
  });
  for (const priority of [{ fairnessKey: 'ada' }, undefined]) {
    const paid = new MockActivityEnvironment({ priority }).run(payAll, '4217-0xa');
    await expect(paid).rejects.toThrow(ApplicationFailure);
  }
  expect(asked).toEqual([
    ['4217-0xa', 'ada'],
    ['4217-0xa', undefined],
  ]);
});
