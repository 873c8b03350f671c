import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChainSigners } from '../../temporal/chain-signers.js';
import {
  busMessageRuns,
  cloneRuns,
  emailRuns,
  royaltySplitRuns,
  swarmRuns,
  verificationRuns,
  videoRuns,
} from '../../temporal/row-runs.js';
import { AGENT_ID, AGENT_OWNER } from '../../workflows/search-attributes.js';
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

test.each([
  ['an e-mail', emailRuns, 'email', 'E-mail'],
  ['a video', videoRuns, 'video', 'Video'],
  ['a swarm', swarmRuns, 'swarm', 'Swarm'],
  ['a verification', verificationRuns, 'verify-agent', 'Verification of agent'],
] as const)(
  'the run of %s has a summary, its owner and its agent',
  async (_, runsOf, name, summary) => {
    const id = randomUUID();
    await runsOf(clientOf()).start(id, { owner: 'ada', agentId: id });
    const run = await clientOf().workflow.getHandle(`${name}-${id}`).describe();
    expect(await run.staticSummary()).toBe(`${summary} ${id}`);
    const attributes = [AGENT_OWNER, AGENT_ID].map((key) => run.typedSearchAttributes.get(key));
    expect(attributes).toEqual(['ada', id]);
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
