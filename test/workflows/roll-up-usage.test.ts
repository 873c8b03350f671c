import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { usagePass } from './support/usage-pass.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows({ shortTimeouts: true });
});
afterAll(() => lab?.close());

test('a pass rolls up usage', async () => {
  const { result } = await usagePass(lab.environment, bundle, {
    rollUpUsage: () => Promise.resolve(2),
  });
  expect(result).toEqual({ rolledUp: 2 });
});

test('a brief database outage does not end a pass', async () => {
  let failures = 2;
  const { result } = await usagePass(lab.environment, bundle, {
    rollUpUsage() {
      if (failures-- > 0) throw ApplicationFailure.retryable('away', 'ConnectionRefusedError');
      return Promise.resolve(3);
    },
  });
  expect(result).toEqual({ rolledUp: 3 });
});
