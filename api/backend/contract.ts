import * as z from 'zod';
import { PLANS } from '../../src/types/plans.js';
import { agentConfig, agentName } from '../../src/agents/model/agent-config.js';
import type { Deployment } from '../../src/agents/lifecycle/deployments.js';
import { OPERATIONS, PLAIN_KINDS } from '../../src/types/operation-kinds.js';
import { upperFirst } from '../../src/lib/upper-first.js';
import { bearer } from '../auth/bearer.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { DEFAULT_PAGE, MAX_PAGE, pageQuery } from '../http/pagination.js';
import {
  changesSkill,
  credentialName,
  credentialValue,
  NO_SKILL_CHANGE,
  skillName,
  skillSettings,
} from '../views/agent-tools.js';
import { agentCreated, agentIdParams, agentStatus } from '../views/backend-agents.js';
import { channelsBody } from '../views/channels.js';
import { cloneAnswer, cloneBody } from '../views/clones.js';
import { containerStats } from '../views/container-stats.js';
import { traceHistory } from '../views/fleet.js';
import { heartbeatChange, heartbeatSet } from '../views/heartbeat.js';
import {
  archiveList,
  historyQuery,
  operationAnswer,
  operationList,
  restoreBody,
  updateBody,
  waitQuery,
  WAITS_AT_ONCE,
} from '../views/operations.js';
import { agentVerification } from '../views/verification.js';
import { DEPLOYMENT_LIMIT } from './limits.js';

/** Backend endpoints that others call or offer as well, without handlers: all share the declaration. */

export const deployAgent = area({ tag: 'Deployments', auth: internalKey }).declare({
  method: 'POST',
  path: '/api/deployments',
  operationId: 'deployAgent',
  summary: 'Deploy an agent container',
  idempotent: true,
  limit: DEPLOYMENT_LIMIT,
  body: z.object({
    name: agentName,
    plan: z.string().optional(),
    model: z.string().optional(),
    aiProvider: z.string().optional(),
    config: agentConfig.optional(),
    agentLimit: z.number().int().min(0).optional(),
    agentCap: z.int().min(0).nullable().optional(),
    channels: channelsBody.optional(),
  }),
  responses: { 201: agentCreated },
  answerHeaders: ['X-Temporal-Run'],
  errors: [402, 403, 404, 409, 503],
});

export const cloneAgent = area({ tag: 'Clones', auth: bearer, keyScope: 'agents' }).declare({
  method: 'POST',
  path: '/api/agents/clone',
  operationId: 'cloneAgent',
  summary: 'Clone an agent, paid for by an earlier payment in pathUSD',
  idempotent: true,
  body: cloneBody,
  responses: { 202: cloneAnswer },
  errors: [402, 403, 404, 409, 503],
});

/** A new agent's configuration, which also carries properties of the agent itself. */
const newAgentConfig = agentConfig.pipe(
  z.looseObject({
    plan: z.string().optional(),
    aiProvider: z.string().optional(),
    model: z.string().optional(),
  }),
);

export const createAgent = area({ tag: 'Agents', auth: internalKey }).declare({
  method: 'POST',
  path: '/api/agents',
  operationId: 'createAgent',
  summary: 'Create an agent',
  idempotent: true,
  body: z.object({ name: agentName, config: newAgentConfig.optional() }),
  responses: { 201: agentCreated },
  answerHeaders: ['X-Temporal-Run'],
  errors: [402, 403, 404, 409, 503],
});

/** Returns the deployment that the body of `createAgent` requests. */
export function deploymentOf({
  config = {},
  name,
}: z.output<typeof createAgent.body & {}>): Deployment {
  const { plan, aiProvider, model, ...others } = config;
  return { name, plan, aiProvider, model, config: others };
}

const ofAgent = area({ tag: 'Agents', auth: internalKey, params: agentIdParams, errors: [404] });

export const updateAgent = ofAgent.declare({
  method: 'PUT',
  path: '/api/agents/:id',
  operationId: 'updateAgent',
  summary:
    "Change an agent's plan, AI provider or configuration; a running agent restarts with the change",
  idempotent: true,
  body: z.object({
    plan: z.string().optional(),
    aiProvider: z.string().optional(),
    config: agentConfig.optional(),
  }),
  responses: {
    200: z.strictObject({
      id: z.string(),
      plan: z.enum(PLANS),
      aiProvider: z.string(),
      subdomain: z.string(),
      status: agentStatus,
      message: z.string(),
    }),
  },
  answerHeaders: ['X-Temporal-Run'],
  errors: [402, 403, 409, 503],
});

export const deleteAgent = area({
  tag: 'Agents',
  auth: internalKey,
  params: agentIdParams,
}).declare({
  method: 'DELETE',
  path: '/api/agents/:id',
  operationId: 'deleteAgent',
  summary: 'Remove an agent and all its data, even during another operation',
  responses: { 200: z.strictObject({ id: z.string(), deleted: z.literal(true) }) },
  answerHeaders: ['X-Temporal-Run'],
});

/** Shared declaration of operations on an agent; the answer is the operation's state after `wait`. */
const operation = {
  idempotent: true,
  query: waitQuery,
  atOnce: WAITS_AT_ONCE,
  responses: { 202: operationAnswer },
  answerHeaders: ['X-Temporal-Run'],
  errors: [402, 409, 503],
} as const;

/** Returns for example `resetAgentMemory` for `reset-memory`. */
function plainOperationId(kind: string): string {
  const [verb = '', ...rest] = kind.split('-');
  return [verb, 'Agent', ...rest.map(upperFirst)].join('');
}

/** Operations without parameters: one endpoint for each such line of the table of operations. */
export const PLAIN_OPERATIONS = PLAIN_KINDS.map((kind) => ({
  kind,
  declared: ofAgent.declare({
    ...operation,
    method: 'POST',
    path: `/api/agents/:id/${kind}`,
    operationId: plainOperationId(kind),
    summary: OPERATIONS[kind].summary,
  }),
}));

export const updateRuntime = ofAgent.declare({
  ...operation,
  method: 'POST',
  path: '/api/agents/:id/update',
  operationId: 'updateAgentRuntime',
  summary: 'Update an agent; rolls back on failure',
  body: updateBody,
});

export const restoreMemory = ofAgent.declare({
  ...operation,
  method: 'POST',
  path: '/api/agents/:id/restore',
  operationId: 'restoreAgentMemory',
  summary: "Restore an agent's memory from an archive; the current memory is archived",
  body: restoreBody,
});

export const setSkill = ofAgent.declare({
  ...operation,
  method: 'PUT',
  path: '/api/agents/:id/skills/:skill',
  operationId: 'setAgentSkill',
  summary: "Change one skill in an agent's configuration; rolls back on failure",
  params: agentIdParams.extend({ skill: skillName }),
  body: z.strictObject(skillSettings).refine(changesSkill, NO_SKILL_CHANGE),
});

const ofSkill = agentIdParams.extend({ skill: skillName });

export const installSkill = ofAgent.declare({
  ...operation,
  method: 'POST',
  path: '/api/agents/:id/skills/:skill',
  operationId: 'installAgentSkill',
  summary: "Install a published skill's present version; rolls back on failure",
  params: ofSkill,
  errors: [...operation.errors, 429],
});

export const removeSkill = ofAgent.declare({
  ...operation,
  method: 'DELETE',
  path: '/api/agents/:id/skills/:skill',
  operationId: 'removeAgentSkill',
  summary: 'Remove an installed skill; rolls back on failure',
  params: ofSkill,
});

export const setCredential = ofAgent.declare({
  ...operation,
  method: 'PUT',
  path: '/api/agents/:id/credentials/:name',
  operationId: 'setAgentCredential',
  summary: "Set or remove an environment variable of an agent's tools; rolls back on failure",
  params: agentIdParams.extend({ name: credentialName }),
  body: z.strictObject({ value: credentialValue }),
});

export const agentArchives = ofAgent.declare({
  method: 'GET',
  path: '/api/agents/:id/archives',
  operationId: 'listAgentArchives',
  summary: "List an agent's archived memories, newest first",
  responses: { 200: archiveList },
});

export const agentOperations = ofAgent.declare({
  method: 'GET',
  path: '/api/agents/:id/operations',
  operationId: 'listAgentOperations',
  summary: "List an agent's operations, newest first",
  query: historyQuery,
  responses: { 200: operationList },
});

export const verifyAgent = ofAgent.declare({
  method: 'POST',
  path: '/api/agents/:id/verify',
  operationId: 'verifyAgent',
  summary: 'Measure a running agent; a failed check is `verified: false`',
  idempotent: true,
  responses: { 200: agentVerification },
  errors: [409, 503],
});

export const unverifyAgent = ofAgent.declare({
  method: 'DELETE',
  path: '/api/agents/:id/verify',
  operationId: 'unverifyAgent',
  summary: "Remove an agent's verification, if any",
  responses: { 200: z.strictObject({ success: z.literal(true) }) },
});

/** The changes that the web API forwards unchanged for an agent's owner. */
export const FOR_OWNERS = [
  ...PLAIN_OPERATIONS.map(({ declared }) => declared),
  updateRuntime,
  restoreMemory,
  deleteAgent,
  unverifyAgent,
];

export const setHeartbeat = area({ tag: 'Health', auth: internalKey }).declare({
  method: 'PUT',
  path: '/api/heartbeat',
  operationId: 'setUserHeartbeat',
  summary: "Set the heartbeat interval of a user's running agents; omitted fields stay unchanged",
  body: heartbeatChange,
  responses: { 200: heartbeatSet },
  errors: [404],
});

export const readTrace = area({ tag: 'Fleet', auth: internalKey }).declare({
  method: 'GET',
  path: '/api/traces/:id',
  operationId: 'getTrace',
  summary: 'Get the steps of an operation, a run of a task, or a swarm',
  params: z.object({ id: z.string().max(64).describe('Id of the operation, run or swarm') }),
  responses: { 200: traceHistory },
  errors: [404, 503],
});

/** Cursor of a page: the agent of its last container. */
const AGENT_ID = z.tuple([z.string()]);

export const runtimeInstances = area({ tag: 'Runtime', auth: internalKey }).declare({
  method: 'GET',
  path: '/api/runtime/instances',
  operationId: 'listRuntimeInstances',
  summary: 'List the agent containers on all reachable Docker hosts',
  query: z.object({
    stats: z
      .enum(['true', 'false'])
      .default('false')
      .describe("Include each container's current resource usage"),
    ...pageQuery(AGENT_ID, MAX_PAGE, DEFAULT_PAGE),
  }),
  responses: {
    200: z.strictObject({
      count: z.int().describe('Number of containers on this page'),
      instances: z.array(
        z.strictObject({
          id: z.string().describe("The agent's id"),
          containerId: z.string(),
          userId: z.string(),
          status: z.string(),
          image: z.string(),
          createdAt: z.iso.datetime(),
          stats: containerStats
            .nullable()
            .describe('null unless requested and the container is running'),
        }),
      ),
      unreachable: z
        .array(z.string())
        .optional()
        .describe('Hosts that could not be reached and whose containers are missing'),
    }),
  },
});
