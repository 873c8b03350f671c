import { afterEach, afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { HeartbeatLab, HOST } from './support/heartbeat-lab.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
let heartbeats: HeartbeatLab;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows({ shortTimeouts: true });
});
beforeEach(async () => {
  heartbeats = await HeartbeatLab.open(lab.environment, bundle);
});
afterEach(() => heartbeats?.close());
afterAll(() => lab?.close());

const idsOf = (agents: readonly { readonly agentId: string }[]) =>
  agents.map(({ agentId }) => agentId);

test('a heartbeat reaches every agent once, five at a time and one page in each run', async () => {
  heartbeats.agents = heartbeats.newAgents(120);
  const { count, workflowId, firstRunId } = await heartbeats.send();
  expect(count).toEqual({ answered: 120, skipped: 0, failed: 0 });
  expect([...heartbeats.asked].sort()).toEqual(idsOf(heartbeats.agents));
  expect(heartbeats.mostAtOnce).toBeLessThanOrEqual(5);
  const { workflow } = lab.environment.client;
  const { events } = await workflow.getHandle(workflowId, firstRunId).fetchHistory();
  expect(events?.length).toBeLessThan(1_000);
  const { runId } = await workflow.getHandle(workflowId).describe();
  expect(runId).not.toBe(firstRunId);
});

test('an agent that fails is not retried and does not hold up the others', async () => {
  heartbeats.agents = heartbeats.newAgents(7);
  for (const id of ['lab-0000', 'lab-0003']) heartbeats.failing.add(id);
  const { count } = await heartbeats.send();
  expect(count).toEqual({ answered: 5, skipped: 0, failed: 2 });
  expect([...heartbeats.asked].sort()).toEqual(idsOf(heartbeats.agents));
});

test('a heartbeat skips agents on hosts without a responding worker and reaches all others', async () => {
  heartbeats.agents = [
    ...heartbeats.newAgents(6, 'a-silent-one'),
    ...heartbeats.newAgents(3, HOST),
  ];
  const { count } = await heartbeats.send();
  expect(count).toEqual({ answered: 3, skipped: 0, failed: 6 });
});

test('a heartbeat that is disabled, or that has no agents, makes no call', async () => {
  heartbeats.wanted = false;
  heartbeats.agents = heartbeats.newAgents(3);
  const none = { answered: 0, skipped: 0, failed: 0 };
  expect((await heartbeats.send()).count).toEqual(none);
  heartbeats.wanted = true;
  heartbeats.agents = [];
  expect((await heartbeats.send()).count).toEqual(none);
  expect(heartbeats.asked).toEqual([]);
});
