import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChainSigners } from '../../temporal/chain-signers.js';
import { busMessageRuns, cloneRuns, royaltySplitRuns } from '../../temporal/row-runs.js';
import { WorkflowLab } from '../workflows/support/workflow-lab.js';

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open();
});
afterAll(() => lab?.close());

const clientOf = () => lab.environment.client;
const runOf = async (workflowId: string) => {
  const { runId, type } = await clientOf().workflow.getHandle(workflowId).describe();
  return { runId, type };
};

test.each([
  ['a clone', cloneRuns, 'clone-agent', 'cloneAgent'],
  ['a split', royaltySplitRuns, 'royalty-split', 'payRoyaltySplit'],
  ['a message of the bus', busMessageRuns, 'bus-message', 'deliverBusMessage'],
] as const)(
  'starting %s twice for one row makes one run, named by the row',
  async (_, runsOf, name, type) => {
    const [runs, id] = [runsOf(clientOf()), randomUUID()];
    await Promise.all([runs.start(id), runs.start(id)]);
    const run = await runOf(`${name}-${id}`);
    expect(run.type).toBe(type);
    expect(await runs.start(id)).toBe(true);
    expect(await runOf(`${name}-${id}`)).toEqual(run);
  },
);

test('a signer has one run per chain, however often it is woken', async () => {
  const signers = new ChainSigners(clientOf());
  const address = `0x${randomUUID().replaceAll('-', '')}`;
  const [here, there] = [`4217-${address}`, `84532-${address}`];
  await Promise.all([signers.wake(here), signers.wake(here), signers.wake(there)]);
  const run = await runOf(`chain-signer-${here}`);
  expect(run.type).toBe('chainSigner');
  await signers.wake(here);
  expect(await runOf(`chain-signer-${here}`)).toEqual(run);
  expect((await runOf(`chain-signer-${there}`)).runId).not.toBe(run.runId);
});
