import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { createPaymentActivities } from '../../activities/payments.js';
import { UNCHANGED } from '../../activities/watchdog.js';
import { TableChanges } from '../../src/database/row-changes.js';

const nobody = (): never => {
  throw new Error('nobody pays here');
};

test('a payment that takes long is waited for again, so that no slot is taken by one that waits', async () => {
  const settled = (_: string, signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  const { awaitPayment } = createPaymentActivities({
    ...{ changes: new TableChanges(), signers: { of: nobody }, watch: { settled }, waitMs: 1 },
  });
  const waited = new MockActivityEnvironment().run(awaitPayment, 'cause');
  const failure: unknown = await waited.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ApplicationFailure);
  expect(failure).toMatchObject({ type: UNCHANGED, nextRetryDelay: expect.any(Number) });
});
