import { afterAll, beforeAll, expect, test } from 'vitest';
import { signerRun } from './support/signer-run.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

test('a signer that was woken while it paid looks once more, and then ends', async () => {
  let rounds = 0;
  await signerRun(lab.environment, bundle, async (wake) => {
    rounds++;
    if (rounds < 3) await wake();
  });
  expect(rounds).toBe(3);
});

test('a node that is away for days leaves no event behind', async () => {
  let attempts = 0;
  const { workflowId } = await signerRun(lab.environment, bundle, () => {
    attempts++;
    return attempts < 500 ? Promise.reject(new Error('away')) : Promise.resolve();
  });
  const { events } = await lab.environment.client.workflow.getHandle(workflowId).fetchHistory();
  expect(attempts).toBe(500);
  expect(events?.length).toBeLessThan(15);
});
