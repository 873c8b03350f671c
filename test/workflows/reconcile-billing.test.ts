import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { billingPass } from './support/billing-pass.js';
import { processorEventPass } from './support/processor-event-pass.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  // Time is skipped, so that the real pauses between attempts take no time.
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

const READ = { subscriptions: 2, checkouts: 1, failures: 0 };

test('a pass reads the payment processor', async () => {
  const { result } = await billingPass(lab.environment, bundle, {
    reconcileBilling: () => Promise.resolve(READ),
  });
  expect(result).toEqual(READ);
});

test('a brief database outage does not end a pass', async () => {
  let failures = 2;
  const { result } = await billingPass(lab.environment, bundle, {
    reconcileBilling() {
      if (failures-- > 0) throw ApplicationFailure.retryable('away', 'ConnectionRefusedError');
      return Promise.resolve(READ);
    },
  });
  expect(result).toEqual(READ);
});

test('an event waits for the processor, which is unavailable for hours', async () => {
  const began = await lab.environment.currentTimeMs();
  let failures = 40;
  const { result } = await processorEventPass(lab.environment, bundle, {
    applyProcessorEvent: () => Promise.resolve('reading'),
    readProcessorEvent() {
      if (failures-- > 0) throw ApplicationFailure.retryable('away', 'ProcessorError');
      return Promise.resolve('read');
    },
  });
  expect(result).toBe('read');
  const waited = (await lab.environment.currentTimeMs()) - began;
  expect(waited).toBeGreaterThan(2 * 60 * 60_000);
});
