import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { poll } from '../../dev/poll.js';
import { Supervisors } from '../../temporal/supervisors.js';
import { PLATFORM_TASK_QUEUE, repairAgentId, superviseAgentId } from '../../workflows/ids.js';
import type { FakeAgent } from './support/fake-agent.js';
import { realServer } from './support/real-server.js';
import { RUNNING, WorkflowLab } from './support/workflow-lab.js';
import { HANGS_MS } from '../support/until.js';

// Uses a real server, which reports a run without progress.
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
const endStuckChildren = ({ ref }: FakeAgent, ...stuck: { attempts: number; ms: number }[]) =>
  new Supervisors(lab.environment.client, undefined).endStuckChildren(ref, ...stuck);
const repairOf = ({ ref }: FakeAgent) =>
  lab.environment.client.workflow.getHandle(repairAgentId(ref.agentId));
const statusOf = async (handle: { describe: () => Promise<{ status: { name: string } }> }) =>
  (await handle.describe()).status.name;
/** A step that does not end before its test does. */
const held = () => {
  let letGo = () => {};
  const ended = new Promise<void>((resolve) => (letGo = resolve));
  onTestFinished(() => letGo());
  return () => ended;
};
/** Limits by which every run counts as stuck. */
const STUCK_AT_ONCE = { attempts: 0, ms: 0 };

const handleOf = ({ ref }: FakeAgent) =>
  lab.environment.client.workflow.getHandle(superviseAgentId(ref.agentId));
const runOf = async (agent: FakeAgent) => (await handleOf(agent).describe()).runId;

test('a supervisor that makes progress is not touched, without new events', async () => {
  const agent = lab.agent();
  const supervisor = await lab.supervise(agent);
  await agent.reached('watchHealth');
  const before = await supervisor.historyLength();
  expect(await ensure(agent)).toBe('moves');
  expect(await supervisor.historyLength()).toBe(before);
});

test.each(['terminated', 'cancelled', 'never there'])(
  'a supervisor that is %s is started again and finds that the gateway hangs',
  async (how) => {
    const agent = lab.agent();
    agent.memory = RUNNING;
    if (how !== 'never there') {
      const supervisor = await lab.supervise(agent);
      await agent.reached('watchHealth');
      if (how === 'terminated') await supervisor.handle.terminate();
      else await supervisor.handle.cancel();
      await supervisor.ended().catch(() => undefined); // the expected error
    }
    agent.health = 'unhealthy';
    expect(await ensure(agent)).toBe('missing');
    await agent.went('degraded (unhealthy)', 'repairing (unhealthy)');
    expect(await ensure(agent)).toBe('moves');
    await handleOf(agent).terminate();
  },
);

test('a supervisor whose code fails at every step is terminated and started again', async () => {
  const agent = lab.agent();
  agent.memory = RUNNING;
  const options = { workflowId: superviseAgentId(agent.ref.agentId) };
  await lab.environment.client.workflow.start('superviseAgent', {
    ...options,
    taskQueue: PLATFORM_TASK_QUEUE,
    args: [], // invalid arguments, which make every step fail
  });
  const stuckRun = await runOf(agent);
  expect(await ensure(agent)).toBe('moves');
  const isStuck = async () =>
    (await ensure(agent, { attempts: 3, ms: 0 })) === 'stuck' || undefined;
  expect(await poll(isStuck, { timeoutMs: HANGS_MS, everyMs: 100 })).toBe(true);
  expect(await runOf(agent)).not.toBe(stuckRun);
  await agent.reached('watchHealth');
  await handleOf(agent).terminate();
});

describe('repair left by an earlier supervisor', () => {
  test('a stuck repair is ended, and the new supervisor repairs its agent', async () => {
    const agent = lab.agent();
    agent.memory = RUNNING;
    // A repair that fails at every step.
    await lab.environment.client.workflow.start('repairAgent', {
      workflowId: repairAgentId(agent.ref.agentId),
      taskQueue: PLATFORM_TASK_QUEUE,
      args: [], // invalid arguments, which make every step fail
    });
    expect(await endStuckChildren(agent)).toBe(false);
    expect(await statusOf(repairOf(agent))).toBe('RUNNING');
    const supervisor = await lab.supervise(agent);
    await agent.reached('watchHealth');
    agent.health = 'unhealthy';
    await supervisor.handle.signal('checkNow');
    const isToBeRepaired = () => agent.states.includes('repairing (unhealthy)');
    await agent.until('it is to be repaired', isToBeRepaired);
    expect(await endStuckChildren(agent, STUCK_AT_ONCE)).toBe(true);
    await agent.reached('killGateway');
    await supervisor.handle.terminate();
  });

  test('a repair of the current supervisor is not mistaken for one of an earlier supervisor', async () => {
    const agent = lab.agent();
    agent.memory = RUNNING;
    agent.on('killGateway', held());
    agent.health = 'unhealthy';
    const supervisor = await lab.supervise(agent);
    await agent.reached('killGateway');
    expect(await endStuckChildren(agent, STUCK_AT_ONCE)).toBe(false);
    expect(await statusOf(repairOf(agent))).toBe('RUNNING');
    // The repair is cancelled with its supervisor, but does not end.
    await supervisor.handle.terminate();
    expect(await ensure(agent)).toBe('missing');
    expect(await endStuckChildren(agent, STUCK_AT_ONCE)).toBe(true);
    expect(await statusOf(repairOf(agent))).not.toBe('RUNNING');
    await handleOf(agent).terminate();
  });
});

describe('stuck part of a supervisor', () => {
  test('a stuck repair is ended and counts as failed', async () => {
    const agent = lab.agent().on('killGateway', held());
    agent.memory = RUNNING;
    agent.health = 'unhealthy';
    await lab.supervise(agent);
    await agent.reached('killGateway');
    expect(await endStuckChildren(agent, STUCK_AT_ONCE, STUCK_AT_ONCE)).toBe(true);
    await agent.went('degraded (unhealthy)', 'repairing (unhealthy)', 'crash_loop (repair_failed)');
  });

  test('a stuck part does not prevent a removal', async () => {
    const agent = lab.agent().on('createContainer', held());
    const supervisor = await lab.supervise(agent, { provisioned: false, provision: 'made' });
    await agent.reached('createContainer');
    const removed = await supervisor.request('delete', 'removed');
    expect(await endStuckChildren(agent, STUCK_AT_ONCE)).toBe(false);
    expect(agent.finished).toEqual([]);
    expect(await endStuckChildren(agent, STUCK_AT_ONCE, STUCK_AT_ONCE)).toBe(true);
    expect(await agent.end('made')).toBe('cancelled');
    expect(await agent.end(removed)).toBe('succeeded');
  });
});
