import { afterEach, afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { BeatLab, HOST } from './support/beat-lab.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
let beats: BeatLab;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows({ shortTimeouts: true });
});
beforeEach(async () => {
  beats = await BeatLab.open(lab.environment, bundle);
});
afterEach(() => beats?.close());
afterAll(() => lab?.close());

const idsOf = (agents: readonly { readonly agentId: string }[]) =>
  agents.map(({ agentId }) => agentId);

test('a beat asks every agent once, five at a time, a page in each run', async () => {
  beats.agents = beats.newAgents(120);
  const { count, workflowId, firstRunId } = await beats.beat();
  expect(count).toEqual({ answered: 120, skipped: 0, failed: 0 });
  expect([...beats.asked].sort()).toEqual(idsOf(beats.agents));
  expect(beats.mostAtOnce).toBeLessThanOrEqual(5);
  const { workflow } = lab.environment.client;
  const { events } = await workflow.getHandle(workflowId, firstRunId).fetchHistory();
  expect(events?.length).toBeLessThan(1_000);
  const { runId } = await workflow.getHandle(workflowId).describe();
  expect(runId).not.toBe(firstRunId);
});

test('an agent that fails is not asked again, and keeps no other from being asked', async () => {
  beats.agents = beats.newAgents(7);
  for (const id of ['lab-0000', 'lab-0003']) beats.failing.add(id);
  const { count } = await beats.beat();
  expect(count).toEqual({ answered: 5, skipped: 0, failed: 2 });
  expect([...beats.asked].sort()).toEqual(idsOf(beats.agents));
});

test('agents of a host whose worker is silent are given up, and those of others asked', async () => {
  beats.agents = [...beats.newAgents(6, 'a-silent-one'), ...beats.newAgents(3, HOST)];
  const { count } = await beats.beat();
  expect(count).toEqual({ answered: 3, skipped: 0, failed: 6 });
});

test('a beat that the user does not want, or of a user without agents, asks nobody', async () => {
  beats.wanted = false;
  beats.agents = beats.newAgents(3);
  const none = { answered: 0, skipped: 0, failed: 0 };
  expect((await beats.beat()).count).toEqual(none);
  beats.wanted = true;
  beats.agents = [];
  expect((await beats.beat()).count).toEqual(none);
  expect(beats.asked).toEqual([]);
});
