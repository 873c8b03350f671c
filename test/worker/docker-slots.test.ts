import { randomUUID } from 'node:crypto';
import { Worker, type WorkerOptions } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentRef } from '../../src/agents/agent-ref.js';
import { Supervisors } from '../../temporal/supervisors.js';
import { dockerSlots } from '../../worker/docker-slots.js';
import { PLATFORM_TASK_QUEUE, containersTaskQueue } from '../../workflows/ids.js';
import { testTemporal, workflowCode, type TestTemporal } from '../support/temporal.js';
import { FakeAgent, SETTINGS, fakeActivities } from '../workflows/support/fake-agent.js';

const DOCKER_CALLS = 2;
const HOST = 'slots';

let temporal: TestTemporal;
let workers: Worker[] = [];
let running: Promise<unknown> = Promise.resolve();
let letGo: () => void;
const held = new Promise<void>((resolve) => (letGo = resolve));
const agents = new Map<string, FakeAgent>();

beforeAll(async () => {
  temporal = await testTemporal();
  const { connection, namespace } = temporal;
  const activities = fakeActivities(agentOf, () => ({ ...SETTINGS, autoRepair: false }));
  const common: Pick<WorkerOptions, 'connection' | 'namespace'> = { connection, namespace };
  workers = await Promise.all([
    Worker.create({
      ...common,
      ...(await workflowCode()),
      taskQueue: PLATFORM_TASK_QUEUE,
      activities: activities.records,
    }),
    Worker.create({
      ...common,
      taskQueue: containersTaskQueue(HOST),
      activities: activities.containers,
      tuner: dockerSlots({ dockerCalls: DOCKER_CALLS, watched: 10 }),
    }),
  ]);
  running = Promise.all(workers.map((worker) => worker.run()));
});
afterAll(async () => {
  letGo();
  for (const worker of workers) worker.shutdown();
  await running;
  await temporal?.close();
});

function agentOf({ agentId }: AgentRef): FakeAgent {
  const agent = agents.get(agentId);
  if (!agent) throw new Error(`no agent ${agentId}`);
  return agent;
}

function newAgent(): FakeAgent {
  const agent = new FakeAgent({ agentId: randomUUID(), userId: 'user', host: HOST });
  agents.set(agent.ref.agentId, agent);
  return agent;
}

const supervised = (agent: FakeAgent) => ({
  ...{ ...agent.ref, name: 'an agent', desired: 'running' as const, provisioned: true },
});

test('agents that are watched for as long as they are degraded keep no operation waiting', async () => {
  const supervisors = new Supervisors(temporal.client, undefined);
  const degraded = Array.from({ length: DOCKER_CALLS + 1 }, newAgent);
  for (const agent of degraded) {
    agent.health = 'stopped';
    agent.on('watchDegraded', () => held);
    await supervisors.checkNow(supervised(agent));
  }
  await Promise.all(degraded.map((agent) => agent.reached('watchDegraded')));

  const other = newAgent();
  const operationId = randomUUID();
  await supervisors.request(supervised(other), 'stop', operationId);
  expect(await other.end(operationId)).toBe('succeeded');
});

test('no more activities than that work on the engine at a time', async () => {
  const supervisors = new Supervisors(temporal.client, undefined);
  let underWay = 0;
  let most = 0;
  const stopped = Array.from({ length: DOCKER_CALLS * 4 }, newAgent);
  const ends = stopped.map(async (agent) => {
    agent.on('stopContainer', async () => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setTimeout(resolve, 20));
      underWay--;
    });
    const operationId = randomUUID();
    await supervisors.request(supervised(agent), 'stop', operationId);
    return agent.end(operationId);
  });
  expect(new Set(await Promise.all(ends))).toEqual(new Set(['succeeded']));
  expect(most).toBeLessThanOrEqual(DOCKER_CALLS);
});
