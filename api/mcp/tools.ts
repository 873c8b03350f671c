import { planToProvision } from '../../src/accounts/accounts/plan-to-provision.js';
import { findEntitlement } from '../../src/accounts/accounts/entitlement.js';
import { BadRequestError } from '../../src/lib/errors.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { webAgentLimit } from '../../src/types/plans.js';
import type { ApiKeyCaller } from '../auth/api-key.js';
import { bearer, userIdOf } from '../auth/bearer.js';
import type { InternalCaller } from '../auth/internal-key.js';
import type { RequiredScope } from '../auth/key-scope.js';
import { runHeader } from '../backend/answer-operation.js';
import { createAgent, deploymentOf } from '../backend/contract.js';
import type { BackendDependencies } from '../backend/dependencies.js';
import { DEPLOYMENT_LIMIT } from '../backend/limits.js';
import { requestedBy } from '../backend/requested-by.js';
import { endpoint, type Endpoint } from '../http/endpoint.js';
import { routeOf } from '../http/endpoint-request.js';
import { reply } from '../http/reply.js';
import { presentCreated } from '../views/backend-agents.js';
import { presentTask } from '../views/scheduled-tasks.js';
import { answerChat, type ChatCaller } from '../web/chat-answer.js';
import { sendMessage } from '../web/chat.js';
import { LIMITS } from '../web/limits.js';
import { answerTasks, createScheduledTask, listScheduledTasks } from '../web/scheduled-tasks.js';
import { toolOf, type Tool, type ToolOptions } from './tool.js';

export type ToolDependencies = Pick<
  BackendDependencies,
  'chats' | 'deployments' | 'scheduledTasks' | 'settings'
>;

interface ToolRequest {
  readonly caller: InternalCaller | ApiKeyCaller;
  readonly tenant: TenantDatabase;
}

const WAIT = 'With `wait`, the answer is sent when the operation has ended.';

/**
 * Makes the tools, from endpoints of the backend and from such of the web API as the backend lacks: with a
 * user's key, each has the rules and limits that the key has at the web API.
 * @param backend the endpoints of the backend
 */
export function mcpTools(
  { chats, deployments, scheduledTasks, settings }: ToolDependencies,
  backend: readonly Endpoint[],
): readonly Tool[] {
  const found = new Map(backend.map((each) => [routeOf(each), each]));
  /** Returns an endpoint of the backend for keys of users as well; its handler accepts both callers. */
  const forKeys = (route: string, keyScope: RequiredScope = 'agents'): Endpoint => {
    const known = found.get(route);
    if (known === undefined) throw new TypeError(`the backend has no endpoint ${route}`);
    return { ...known, auth: bearer, keyScope, limit: known.limit ?? LIMITS.agents };
  };

  const create = endpoint({
    ...createAgent,
    auth: bearer,
    keyScope: 'agents',
    limit: DEPLOYMENT_LIMIT,
    async handler(request) {
      const { body, caller } = request;
      const wanted = deploymentOf(body);
      const { agent, run } = await deployments.deploy(
        requestedBy(request),
        caller.kind === 'api-key' ? { ...wanted, ...planOf(caller, wanted.plan) } : wanted,
      );
      return reply(201, presentCreated(agent, settings), runHeader(run));
    },
  });

  const chat = endpoint({
    ...sendMessage,
    auth: bearer,
    async handler(request) {
      const { headers, idempotencyId, isAnswered, markAnswered, signal, tenant } = request;
      const caller = await chatCallerOf(request);
      const chatRequest = {
        caller,
        headers,
        idempotencyId,
        isAnswered,
        markAnswered,
        signal,
        tenant,
      };
      return answerChat({ chats }, chatRequest, request.body);
    },
  });

  const listTasks = endpoint({
    ...listScheduledTasks,
    auth: bearer,
    handler: ({ caller, query, tenant }) => answerTasks(tenant, userOf(caller), query),
  });

  const createTask = endpoint({
    ...createScheduledTask,
    auth: bearer,
    async handler(request) {
      userOf(request.caller);
      const task = await scheduledTasks.create(requestedBy(request), request.body);
      return reply(201, { task: presentTask(task) });
    },
  });

  /** Returns the caller of a chat, with plan and rights. */
  async function chatCallerOf({ caller, tenant }: ToolRequest): Promise<ChatCaller> {
    const id = userOf(caller);
    if (caller.kind === 'api-key')
      return { user: { id, isAdmin: caller.isAdmin }, plan: caller.plan };
    const entitlement = await findEntitlement(tenant, id, settings.accounts);
    return { user: { id, isAdmin: entitlement?.isAdmin ?? false }, plan: entitlement?.plan };
  }

  const tools: Readonly<Record<string, ToolOptions>> = {
    agents_list: { endpoint: forKeys('GET /api/agents'), example: { limit: 10 } },
    agents_get: { endpoint: forKeys('GET /api/agents/:id'), example: {} },
    agents_create: {
      endpoint: create,
      description: 'Create an agent; it starts in the background',
      hint: 'agents_get shows when it is active.',
      example: { name: 'Researcher' },
    },
    agents_start: {
      endpoint: forKeys('POST /api/agents/:id/start'),
      hint: WAIT,
      repeatable: true,
      example: { wait: 60 },
    },
    agents_stop: {
      endpoint: forKeys('POST /api/agents/:id/stop'),
      hint: WAIT,
      destructive: true,
      repeatable: true,
      example: { wait: 60 },
    },
    agents_restart: {
      endpoint: forKeys('POST /api/agents/:id/restart'),
      hint: WAIT,
      destructive: true,
      example: { wait: 60 },
    },
    agents_delete: {
      endpoint: forKeys('DELETE /api/agents/:id'),
      hint: 'The agent and its data cannot be restored.',
      destructive: true,
      repeatable: true,
      example: {},
    },
    agents_logs: {
      endpoint: forKeys('GET /api/logs/:agentId/history'),
      example: { limit: 20 },
    },
    agents_stats: { endpoint: forKeys('GET /api/agents/:id/stats'), example: {} },
    agents_chat: {
      endpoint: chat,
      description: 'Send a message to a running agent and return its answer',
      hint: 'An answer may take minutes; messages of one `conversation` have its context.',
      fixed: { stream: false },
      example: { message: 'Sum up your work of today.' },
    },
    usage_summary: {
      endpoint: forKeys('GET /api/usage/summary', 'ai'),
      example: { days: 7 },
    },
    tasks_list: {
      endpoint: listTasks,
      description: 'List your scheduled tasks, oldest first',
      // In the endpoint `id` names a task, but in tools an agent.
      fixed: { id: undefined },
      example: {},
    },
    tasks_create: {
      endpoint: createTask,
      example: { name: 'Morning news', message: 'Sum up the news.', schedule: '0 7 * * *' },
    },
  };
  return Object.entries(tools).map(([name, options]) => toolOf(name, options));
}

/** Returns the user that a caller is or speaks for. @throws BadRequestError for the operator's own programs */
function userOf(caller: InternalCaller | ApiKeyCaller): string {
  const userId = userIdOf(caller);
  if (userId === undefined) throw new BadRequestError('x-user-id is required for this tool');
  return userId;
}

/** Returns what the web API decides for a user's new agent. @throws PaymentRequiredError */
function planOf({ isAdmin, plan }: ApiKeyCaller, requested: string | undefined) {
  return {
    plan: planToProvision({ plan, isAdmin }, requested),
    ...(!isAdmin && { agentLimit: webAgentLimit(plan) }),
  };
}
