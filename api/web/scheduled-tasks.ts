import * as z from 'zod';
import { listRuns } from '../../src/agents/tasks/past-runs.js';
import { getTask, listTasks } from '../../src/agents/tasks/scheduled-tasks.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { person } from '../auth/person.js';
import { area } from '../http/area.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import {
  presentTask,
  presentTaskRun,
  taskFields,
  taskItem,
  taskRunItem,
} from '../views/scheduled-tasks.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { requestedByPerson } from './person-request.js';

const PATH = '/api/scheduled-tasks';

const tasks = area({ tag: 'Scheduled tasks', auth: person, keyScope: 'agents' });

const id = z.string().min(1).max(64).describe('The task');
const agentId = z.string().min(1).max(64);
const { timezone, enabled, ...needed } = taskFields;
const oneTask = z.strictObject({ task: taskItem });

export const listScheduledTasks = tasks.declare({
  method: 'GET',
  path: PATH,
  operationId: 'listScheduledTasks',
  summary: 'List your scheduled tasks, oldest first, or get one with its runs',
  query: z.object({
    id: id.optional(),
    agentId: agentId.optional().describe('Only tasks of this agent'),
    ...page,
  }),
  responses: {
    200: z.union([
      z.strictObject({ tasks: z.array(taskItem), count: z.int() }),
      oneTask.extend({ runs: z.array(taskRunItem).describe('The last 100, newest first') }),
    ]),
  },
  errors: [404],
});

export const createScheduledTask = tasks.declare({
  method: 'POST',
  path: PATH,
  operationId: 'createScheduledTask',
  summary: 'Schedule a task for your agent',
  idempotent: true,
  limitOfCaller: LIMITS.tasksOfUser,
  body: z.object({ agentId: agentId.describe('The agent that gets the task'), ...taskFields }),
  responses: { 201: oneTask },
  errors: [404, 409],
});

/** Creates `/api/scheduled-tasks` (spec 4.15): messages to agents at fixed times. */
export function scheduledTaskEndpoints({
  scheduledTasks,
}: Pick<WebDependencies, 'scheduledTasks'>) {
  return [
    listScheduledTasks.handledBy((request) =>
      answerTasks(request.tenant, request.caller.user.id, request.query),
    ),
    createScheduledTask.handledBy(async (request) => {
      const task = await scheduledTasks.create(requestedByPerson(request), request.body);
      return reply(201, { task: presentTask(task) });
    }),
    tasks({
      method: 'PUT',
      path: PATH,
      operationId: 'changeScheduledTask',
      summary: 'Change a scheduled task, or run it now; omitted fields stay unchanged',
      limitOfCaller: LIMITS.tasksOfUser,
      body: z.object({
        id,
        ...z.object(needed).partial().shape,
        timezone,
        enabled: enabled.describe('true also resumes a paused task'),
        run: z.literal(true).optional().describe('Runs the task now, also a paused one'),
      }),
      responses: { 200: oneTask },
      errors: [404, 409],
      async handler(request) {
        const { id: taskId, ...change } = request.body;
        const task = await scheduledTasks.change(requestedByPerson(request), taskId, change);
        return reply(200, { task: presentTask(task) });
      },
    }),
    tasks({
      method: 'DELETE',
      path: PATH,
      operationId: 'deleteScheduledTask',
      summary: 'Remove a scheduled task; its conversation stays',
      limitOfCaller: LIMITS.tasksOfUser,
      query: z.object({ id }),
      responses: { 200: z.strictObject({ success: z.literal(true) }) },
      errors: [404],
      async handler(request) {
        await scheduledTasks.remove(requestedByPerson(request), request.query.id);
        return reply(200, { success: true });
      },
    }),
  ];
}

/** Answers with a page of a user's tasks, or with the task that the query names. */
export async function answerTasks(
  tenant: TenantDatabase,
  userId: string,
  query: z.output<typeof listScheduledTasks.query & {}>,
) {
  if (query.id !== undefined) {
    const task = await getTask(tenant, query.id);
    const runs = await listRuns(tenant, task);
    return reply(200, { task: presentTask(task), runs: runs.map(presentTaskRun) });
  }
  const { cursor: after, limit } = query;
  const wanted = { agentId: query.agentId, limit, after };
  const { items, next } = await listTasks(tenant, userId, wanted);
  const found = items.map((task) => presentTask(task));
  return reply(200, { tasks: found, count: found.length }, nextPageLink(PATH, query, next));
}
