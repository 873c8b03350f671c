import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { listRuns } from '../../../src/agents/tasks/past-runs.js';
import { getTask, ScheduledTasks } from '../../../src/agents/tasks/scheduled-tasks.js';
import type { AgentRef } from '../../../src/types/agent-ref.js';
import { startTaskRun } from '../../../temporal/task-runs.js';
import { taskRuns } from '../../../worker/handed-rows.js';
import { handOver } from '../../../worker/hand-over.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testTemporal, type TestTemporal } from '../../support/temporal.js';
import { newTaskAgent, TASK_HOST, TaskGateway } from './task-lab.js';

const PROGRAM = fileURLToPath(new URL('task-worker.mjs', import.meta.url));

let database: TestDatabase;
let temporal: TestTemporal;
let gateway: TaskGateway;
let agent: AgentRef;

beforeAll(async () => {
  [database, temporal] = await Promise.all([testDatabase(), testTemporal()]);
  gateway = new TaskGateway();
  agent = await newTaskAgent(database, { port: await gateway.listen() });
});
afterAll(async () => {
  gateway?.close();
  await temporal?.close();
  await database?.close();
});

function startWorker(): ChildProcess {
  const { address, namespace } = temporal;
  const child = spawn(process.execPath, [PROGRAM, database.url, address, namespace, TASK_HOST], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

test('sends no task twice when the worker is killed between the stored run and the answer', async () => {
  const tasks = new ScheduledTasks({ adminEmails: [] });
  const tenant = database.db.asUser(agent.userId);
  const by = { tenant, actor: agent.userId, requestId: 'r', idempotencyId: 'i' };
  const { agentId } = agent;
  const asked = { agentId, name: 'n', message: 'Is the shop open?', schedule: '7d' };
  const { id } = await tasks.create(by, asked);
  gateway.answer = () => undefined;
  const first = startWorker();
  await tasks.change(by, id, { run: true });
  const handed = taskRuns(database.db, (run) => startTaskRun(temporal.client, run));
  await handOver(database.db, handed);
  await expect.poll(() => gateway.asked.length, { timeout: 60_000 }).toBe(1);
  const runs = async () => listRuns(tenant, await getTask(tenant, id));
  expect(await runs()).toMatchObject([{ status: 'running' }]);
  first.kill('SIGKILL');
  await once(first, 'exit');

  startWorker();
  await expect.poll(async () => (await runs())[0]?.status, { timeout: 120_000 }).toBe('failed');
  expect(await runs()).toMatchObject([
    {
      error: 'The answer was lost when the platform restarted. The message is not sent again',
      answer: null,
    },
  ]);
  expect(gateway.asked).toHaveLength(1);
}, 240_000);
