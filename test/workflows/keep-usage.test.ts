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

test('a pass gives back what is held for nobody, and then adds up what was used', async () => {
  const calls: string[] = [];
  const { result } = await usagePass(lab.environment, bundle, {
    settleAbandoned: () => Promise.resolve(calls.push('settleAbandoned')),
    rollUpUsage: () => Promise.resolve(calls.push('rollUpUsage')),
  });
  expect(calls).toEqual(['settleAbandoned', 'rollUpUsage']);
  expect(result).toEqual({ settled: 1, rolledUp: 2 });
});

test('a database that is away for a moment does not end a pass', async () => {
  let failures = 2;
  const { result } = await usagePass(lab.environment, bundle, {
    settleAbandoned() {
      if (failures-- > 0) throw ApplicationFailure.retryable('away', 'ConnectionRefusedError');
      return Promise.resolve(0);
    },
    rollUpUsage: () => Promise.resolve(3),
  });
  expect(result).toEqual({ settled: 0, rolledUp: 3 });
});
