import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { poll } from '../../dev/poll.js';
import { Supervisors } from '../../temporal/supervisors.js';
import { PLATFORM_TASK_QUEUE, superviseAgentId } from '../../workflows/ids.js';
import type { FakeAgent } from './support/fake-agent.js';
import { realServer } from './support/real-server.js';
import { RUNNING, WorkflowLab } from './support/workflow-lab.js';

// A real server: how a run stands that makes no progress is told there.
let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.open({ environment: realServer });
});
afterEach(() => lab.endSupervisors());
afterAll(() => lab?.close());

const ensure = ({ ref }: FakeAgent, stuck?: { attempts: number; ms: number }) => {
  const agent = { ...ref, name: 'agent', desired: 'running', provisioned: true } as const;
  return new Supervisors(lab.environment.client, undefined).ensure(agent, stuck);
};
const handleOf = ({ ref }: FakeAgent) =>
  lab.environment.client.workflow.getHandle(superviseAgentId(ref.agentId));
const runOf = async (agent: FakeAgent) => (await handleOf(agent).describe()).runId;

test('a supervisor that moves is left as it is, and adds nothing to its history', async () => {
  const agent = lab.agent();
  const supervisor = await lab.supervise(agent);
  await agent.reached('watchHealth');
  const before = await supervisor.historyLength();
  expect(await ensure(agent)).toBe('moves');
  expect(await supervisor.historyLength()).toBe(before);
});

test.each(['terminated', 'cancelled', 'never there'])(
  'one that is %s is started anew, and finds that the gateway hangs',
  async (how) => {
    const agent = lab.agent();
    agent.memory = RUNNING;
    if (how !== 'never there') {
      const supervisor = await lab.supervise(agent);
      await agent.reached('watchHealth');
      if (how === 'terminated') await supervisor.handle.terminate();
      else await supervisor.handle.cancel();
      await supervisor.ended().catch(() => undefined); // as it was told to
    }
    agent.health = 'unhealthy';
    expect(await ensure(agent)).toBe('missing');
    await agent.went('degraded (unhealthy)', 'repairing (unhealthy)');
    expect(await ensure(agent)).toBe('moves');
    await handleOf(agent).terminate();
  },
);

test('one whose code fails at every step is ended, and started anew', async () => {
  const agent = lab.agent();
  agent.memory = RUNNING;
  const options = { workflowId: superviseAgentId(agent.ref.agentId) };
  await lab.environment.client.workflow.start('superviseAgent', {
    ...options,
    taskQueue: PLATFORM_TASK_QUEUE,
    args: [], // of these it can make nothing
  });
  const stuckRun = await runOf(agent);
  expect(await ensure(agent)).toBe('moves');
  const isStuck = async () =>
    (await ensure(agent, { attempts: 3, ms: 0 })) === 'stuck' || undefined;
  expect(await poll(isStuck, { timeoutMs: 150_000, everyMs: 100 })).toBe(true);
  expect(await runOf(agent)).not.toBe(stuckRun);
  await agent.reached('watchHealth');
  await handleOf(agent).terminate();
});
