import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RetainedKind } from '../../src/retention/retained.js';
import { retentionPass } from './support/retention-pass.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

const KINDS: readonly RetainedKind[] = ['agents', 'operations', 'transitions', 'messages', 'usage'];

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows({ shortTimeouts: true });
});
afterAll(() => lab?.close());

test('a pass removes everything outdated, and one failure does not stop the others', async () => {
  const asked: RetainedKind[] = [];
  const { result } = await retentionPass(lab.environment, bundle, {
    retainedKinds: () => Promise.resolve(KINDS),
    removeOldRows(what) {
      asked.push(what);
      if (what === 'transitions') throw ApplicationFailure.retryable('the database is away');
      return Promise.resolve(asked.length);
    },
  });
  expect([...new Set(asked)]).toEqual(KINDS);
  expect(asked.filter((what) => what === 'transitions')).toHaveLength(2);
  expect(result).toEqual({
    agents: 1,
    operations: 2,
    messages: 5,
    usage: 6,
  });
});
