import { randomUUID } from 'node:crypto';
import { Context } from '@temporalio/activity';
import type { Priority } from '@temporalio/common';
import { Worker, type WorkerOptions } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentRef } from '../../src/types/agent-ref.js';
import { UnavailableError } from '../../src/lib/errors.js';
import { Supervisors } from '../../temporal/supervisors.js';
import { ChainSigners } from '../../temporal/chain-signers.js';
import { cloneRuns, royaltySplitRuns } from '../../temporal/row-runs.js';
import {
  chainSignerId,
  cloneAgentId,
  containersTaskQueue,
  PAYMENTS_TASK_QUEUE,
  PLATFORM_TASK_QUEUE,
  startsTaskQueue,
} from '../../workflows/ids.js';
import { until } from '../support/until.js';
import { testTemporal, workflowCode, type TestTemporal } from '../support/temporal.js';
import { FakeAgent, SETTINGS, fakeActivities } from '../workflows/support/fake-agent.js';

let temporal: TestTemporal;
let supervisors: Supervisors;
const stopping: (() => Promise<void>)[] = [];
const agents = new Map<string, FakeAgent>();

beforeAll(async () => {
  temporal = await testTemporal();
  supervisors = new Supervisors(temporal.client, undefined);
  const { records } = fakeActivities(agentOf, () => SETTINGS);
  const pages = {
    beginHeartbeat: () => Promise.resolve(true),
    runningAgents: (_user: string, after: string) =>
      Promise.resolve({ agents: [], ...(after === '' && { next: 'next' }) }),
  };
  const splits = {
    requestSplitPayments: (id: string) => Promise.resolve([id]),
    settleSplitPayment: () => Promise.resolve(),
    finishSplit: () => Promise.resolve('completed'),
  };
  await work({
    ...(await workflowCode()),
    taskQueue: PLATFORM_TASK_QUEUE,
    activities: { ...records, ...pages, ...splits },
  });
});
afterAll(async () => {
  await Promise.all(stopping.map((stop) => stop()));
  await temporal?.close();
});

async function work(options: Omit<WorkerOptions, 'connection' | 'namespace'>): Promise<void> {
  const { connection, namespace } = temporal;
  const worker = await Worker.create({ connection, namespace, ...options });
  const running = worker.run();
  stopping.push(async () => {
    worker.shutdown();
    await running;
  });
}

/** Starts the worker of a host's containers, which executes one activity at a time. */
async function workOn(host: string): Promise<void> {
  const { containers: activities } = fakeActivities(agentOf, () => SETTINGS);
  const maxConcurrentActivityTaskExecutions = 1;
  const maxConcurrentActivityTaskPolls = 1;
  for (const taskQueue of [containersTaskQueue(host), startsTaskQueue(host)]) {
    const limits = { maxConcurrentActivityTaskExecutions, maxConcurrentActivityTaskPolls };
    await work({ taskQueue, activities, ...limits });
  }
}

function agentOf({ agentId }: AgentRef): FakeAgent {
  const agent = agents.get(agentId);
  if (!agent) throw new Error(`unknown agent: ${agentId}`);
  return agent;
}

function newAgent(userId: string, host: string): FakeAgent {
  const agent = new FakeAgent({ agentId: randomUUID(), userId, host });
  agents.set(agent.ref.agentId, agent);
  return agent;
}

const supervised = (agent: FakeAgent) => ({
  ...agent.ref,
  name: 'an agent',
  desired: 'running' as const,
  provisioned: true,
});

test("steps of an operation have priority over background checks, and both carry the owner's fairness key", async () => {
  const host = 'priorities';
  const agent = newAgent('ada', host);
  const given: Record<string, Priority | undefined> = {};
  for (const step of ['stopContainer', 'startContainer', 'watchHealth', 'killGateway'] as const) {
    agent.on(step, () => {
      given[step] = Context.current().info.priority;
    });
  }
  await workOn(host);
  const asked = randomUUID();
  await supervisors.request(supervised(agent), 'restart', asked);
  expect(await agent.end(asked)).toBe('succeeded');
  await agent.reached('watchHealth');
  expect(given.stopContainer).toMatchObject({ priorityKey: 2, fairnessKey: 'ada' });
  expect(given.startContainer).toMatchObject({ priorityKey: 2, fairnessKey: 'ada' });
  expect(given.watchHealth).toMatchObject({ fairnessKey: 'ada' });
  expect(given.watchHealth?.priorityKey).not.toBe(2);
  await supervisors.request(supervised(agent), 'repair', randomUUID());
  await agent.reached('killGateway');
  expect(given.killGateway).toMatchObject({ priorityKey: 2, fairnessKey: 'ada' });
});

test('40 queued operations of one owner do not delay 8 of another owner', async () => {
  const host = 'fair';
  const order: string[] = [];
  const stop = async (userId: string) => {
    const agent = newAgent(userId, host).on('stopContainer', () => {
      order.push(userId);
    });
    const id = randomUUID();
    // So many concurrent requests may time out; the retry has the same id.
    await until(() =>
      supervisors.request(supervised(agent), 'stop', id).then(
        () => true,
        (error: unknown) => {
          if (!(error instanceof UnavailableError)) throw error;
          return undefined;
        },
      ),
    );
    return { agent, id };
  };
  const all = await Promise.all(Array.from({ length: 40 }, () => stop('ada')));
  all.push(...(await Promise.all(Array.from({ length: 8 }, () => stop('bob')))));
  await workOn(host);
  for (const { agent, id } of all) expect(await agent.end(id)).toBe('succeeded');
  // The owners alternate; Temporal decides which owner is first.
  expect(order.lastIndexOf('bob')).toBeLessThan(20);
});

const describeRun = (id: string) => temporal.client.workflow.getHandle(id).describe();

test("money workflows carry their owner's fairness key, and the platform's signer has priority", async () => {
  const clone = randomUUID();
  await cloneRuns(temporal.client).start(clone, { owner: 'ada' });
  const signers = new ChainSigners(temporal.client);
  await signers.wake('4217-0xada', 'ada');
  await signers.wake('4217-0xoperator');
  const found = await Promise.all(
    [cloneAgentId(clone), chainSignerId('4217-0xada'), chainSignerId('4217-0xoperator')].map(
      async (id) => (await describeRun(id)).priority,
    ),
  );
  expect(found).toMatchObject([{ fairnessKey: 'ada' }, { fairnessKey: 'ada' }, { priorityKey: 2 }]);
});

test('40 splits of one owner do not delay 8 of another owner', async () => {
  const runs = royaltySplitRuns(temporal.client);
  const start = async (owner: string) => {
    const id = `${owner}-${randomUUID()}`;
    await runs.start(id, { owner });
    return id;
  };
  const ids: string[] = [];
  for (let n = 0; n < 40; n++) ids.push(await start('ada'));
  for (let n = 0; n < 8; n++) ids.push(await start('bob'));
  // All of them wait for one worker.
  await until(async () => {
    const waiting = await Promise.all(
      ids.map(async (id) => (await describeRun(`royalty-split-${id}`)).raw.pendingActivities),
    );
    return (
      waiting.every((pending) => pending?.[0]?.activityType?.name === 'awaitPayment') || undefined
    );
  });
  const order: string[] = [];
  await work({
    taskQueue: PAYMENTS_TASK_QUEUE,
    activities: {
      awaitPayment(cause: string) {
        order.push(cause.slice(0, 3));
        return Promise.resolve({ state: 'confirmed' });
      },
      payAll: () => Promise.resolve(),
    },
    maxConcurrentActivityTaskExecutions: 1,
    maxConcurrentActivityTaskPolls: 1,
  });
  await until(() => Promise.resolve(order.length === ids.length || undefined));
  expect(order.lastIndexOf('bob')).toBeLessThan(20);
});

test("a run that continues as new keeps its owner's fairness key", async () => {
  const { client } = temporal;
  const handle = await client.workflow.start('sendHeartbeats', {
    workflowId: randomUUID(),
    taskQueue: PLATFORM_TASK_QUEUE,
    args: [{ userId: 'ada' }],
    priority: { fairnessKey: 'ada' },
  });
  await handle.result();
  const last = await client.workflow.getHandle(handle.workflowId).describe();
  expect(last.runId).not.toBe(handle.firstExecutionRunId);
  expect(last.priority).toMatchObject({ fairnessKey: 'ada' });
});
