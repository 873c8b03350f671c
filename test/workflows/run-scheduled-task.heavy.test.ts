import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTaskRunRecordActivities } from '../../activities/tasks.js';
import { OwnerTurns, type TurnEnd } from '../../src/agents/chat/owner-turns.js';
import { TaskRuns, type TaskRunRef } from '../../src/agents/tasks/task-runs.js';
import { newTaskAgent, SECRETS } from '../agents/tasks/task-lab.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { taskRun } from './support/task-run.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

const TEXT = 'Is the shop open?';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
let database: TestDatabase;
let runs: TaskRuns;
let input: { readonly taskId: string; readonly setAt: string };

beforeAll(async () => {
  [lab, database, bundle] = await Promise.all([
    WorkflowLab.open(),
    testDatabase(),
    bundleWorkflows(),
  ]);
  runs = new TaskRuns(database.db, { adminEmails: [] });
});
afterAll(async () => {
  await lab?.close();
  await database?.close();
});
beforeEach(async () => {
  const { agentId, userId } = await newTaskAgent(database);
  const id = randomUUID();
  const setAt = new Date();
  await query(
    `INSERT INTO scheduled_tasks (id, user_id, agent_id, name, message, schedule, timezone, enabled,
                                  set_at, created_at, updated_at)
     VALUES ($id, $userId, $agentId, 'a task', '${TEXT}', '30m', 'UTC', true, $setAt, now(), now())`,
    { id, userId, agentId, setAt },
  );
  input = { taskId: id, setAt: setAt.toISOString() };
});

const query = (sql: string, values: Record<string, unknown> = {}) =>
  database.db.asPlatform().query<Record<string, unknown>>(sql, values);

const run = (askForTask?: (run: TaskRunRef) => Promise<TurnEnd['kind']>) => {
  const turns = new OwnerTurns(database.db, SECRETS);
  const records = createTaskRunRecordActivities({ runs, turns });
  const host = askForTask && { host: { askForTask } };
  return taskRun(lab.environment, bundle, { records, ...host }, input);
};

const ending = (end: TurnEnd) => async (ref: TaskRunRef) => {
  await runs.finish(ref, end);
  return end.kind;
};

const FAILED = { kind: 'failed', reason: 'no answer' } as const;

const rows = () =>
  query('SELECT id, status, error FROM scheduled_task_runs WHERE task_id = $taskId', input);

test('stores the run under the id of the workflow before the task is sent to the agent', async () => {
  const stored: unknown[] = [];
  const { result, workflowId } = await run(async (ref) => {
    stored.push(...(await rows()));
    return ending({ kind: 'answered', answer: 'yes' })(ref);
  });
  expect(result).toBe('answered');
  expect(stored).toEqual([{ id: workflowId, status: 'running', error: null }]);
  expect(await rows()).toEqual([{ id: workflowId, status: 'succeeded', error: null }]);
});

test('pauses the task after ten failures, and runs no more', async () => {
  for (let count = 0; count < 10; count++)
    expect((await run(ending(FAILED))).result).toBe('failed');
  const [task] = await query(
    'SELECT enabled, reason FROM scheduled_tasks WHERE id = $taskId',
    input,
  );
  expect(task).toMatchObject({ enabled: false, reason: expect.stringContaining('no answer') });
  expect((await run(ending(FAILED))).result).toBe('nothing');
  expect(await rows()).toHaveLength(10);
});

test('repeats a turn that could not be stored, under the same id', async () => {
  const asked: string[] = [];
  const { result, workflowId } = await run(async (ref) => {
    asked.push(ref.id);
    if (asked.length < 3) throw ApplicationFailure.retryable('The database is away');
    return ending({ kind: 'answered', answer: 'yes' })(ref);
  });
  expect([result, asked]).toEqual(['answered', [workflowId, workflowId, workflowId]]);
});

test('ends without a turn when its task has another setting', async () => {
  await query(
    `UPDATE scheduled_tasks SET set_at = set_at + interval '1 s' WHERE id = $taskId`,
    input,
  );
  expect((await run(ending(FAILED))).result).toBe('nothing');
  expect(await rows()).toEqual([]);
});

test(
  'keeps the text of the task and its answer out of the history',
  { tags: 'attack' },
  async () => {
    const { workflowId } = await run(async (ref) => {
      expect(await runs.question(ref)).toMatchObject({ text: TEXT });
      return ending({ kind: 'answered', answer: 'the secret answer' })(ref);
    });
    const handle = lab.environment.client.workflow.getHandle(workflowId);
    const history = JSON.stringify(await handle.fetchHistory(), (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString() : value,
    );
    expect(history).toContain(input.taskId);
    for (const secret of [TEXT, 'the secret answer', 'a task'])
      expect(history).not.toContain(secret);
  },
);

test('skips a run that its host does not accept in time', async () => {
  bundle = await bundleWorkflows({ shortTimeouts: true });
  const { result, workflowId } = await run();
  expect(result).toBe('skipped');
  expect(await rows()).toEqual([
    {
      id: workflowId,
      status: 'skipped',
      error: "The agent's host could not be reached in time",
    },
  ]);
});
