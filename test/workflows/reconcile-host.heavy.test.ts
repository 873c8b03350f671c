import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALL_MOVE, reconcilePass } from './support/reconcile-pass.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

test('a pass wakes drifted supervisors first and leaves unknown orphans to the next pass', async () => {
  const calls: unknown[] = [];
  const { result } = await reconcilePass(lab.environment, bundle, {
    wakeDrifted: () => {
      calls.push('wakeDrifted');
      return Promise.resolve(2);
    },
    removeOrphans: (before) => {
      calls.push(before);
      return Promise.resolve(['one']);
    },
  });
  expect(result).toEqual({ supervisors: ALL_MOVE, drifted: 2, orphans: ['one'] });
  expect(calls).toEqual(['wakeDrifted', []]);
});

test('a pass survives a short Docker outage and fails when Docker stays unavailable', async () => {
  let failures = 2;
  const host = {
    wakeDrifted: () => {
      if (failures-- > 0) throw ApplicationFailure.retryable('away', 'DockerUnavailableError');
      return Promise.resolve(0);
    },
    removeOrphans: () => Promise.resolve([]),
  };
  const { result } = await reconcilePass(lab.environment, bundle, host);
  expect(result).toEqual({ supervisors: ALL_MOVE, drifted: 0, orphans: [] });
  failures = Number.POSITIVE_INFINITY;
  await expect(reconcilePass(lab.environment, bundle, host)).rejects.toThrow();
});

test('a pass ensures supervisors first, even while Docker is unavailable', async () => {
  const calls: string[] = [];
  const host = {
    wakeDrifted: () => {
      calls.push('wakeDrifted');
      throw ApplicationFailure.nonRetryable('away', 'DockerUnavailableError');
    },
    removeOrphans: () => Promise.resolve([]),
  };
  const platform = {
    ensureSupervisors: () => {
      calls.push('ensureSupervisors');
      return Promise.resolve(ALL_MOVE);
    },
  };
  await expect(reconcilePass(lab.environment, bundle, host, platform)).rejects.toThrow();
  expect(calls).toEqual(['ensureSupervisors', 'wakeDrifted']);
});
