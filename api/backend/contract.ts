import * as z from 'zod';
import { PLANS } from '../../src/accounts/plans.js';
import { agentConfig, agentName } from '../../src/agents/agent-config.js';
import { OPERATIONS, PLAIN_KINDS } from '../../src/agents/operation-kinds.js';
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
import { cloneAnswer, cloneBody } from '../views/clones.js';
import { containerStats } from '../views/container-stats.js';
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
import { DEPLOYMENT_LIMIT } from './limits.js';

/*
 * The endpoints of the backend that the web API calls: declared here without their handlers, for
 * both sides.
 */

export const deployAgent = area({ tag: 'Deployments', auth: internalKey }).declare({
  method: 'POST',
  path: '/api/deployments',
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
  }),
  responses: { 201: agentCreated },
  errors: [402, 403, 404, 409, 503],
});

export const cloneAgent = area({ tag: 'Clones', auth: bearer }).declare({
  method: 'POST',
  path: '/api/agents/clone',
  summary: 'Clone an agent, for a payment in pathUSD that was made before',
  idempotent: true,
  body: cloneBody,
  responses: { 202: cloneAnswer },
  errors: [402, 403, 404, 409, 503],
});

const ofAgent = area({ tag: 'Agents', auth: internalKey, params: agentIdParams, errors: [404] });

export const updateAgent = ofAgent.declare({
  method: 'PUT',
  path: '/api/agents/:id',
  summary: 'Change plan, AI provider or configuration; a running agent restarts with them',
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
  errors: [402, 403, 409, 503],
});

export const deleteAgent = area({
  tag: 'Agents',
  auth: internalKey,
  params: agentIdParams,
}).declare({
  method: 'DELETE',
  path: '/api/agents/:id',
  summary: 'Remove an agent and all that belongs to it, whatever it is doing',
  responses: { 200: z.strictObject({ id: z.string(), deleted: z.literal(true) }) },
});

/** What is done to an agent: it is answered with how far that is after `wait`. */
const operation = {
  idempotent: true,
  query: waitQuery,
  atOnce: WAITS_AT_ONCE,
  responses: { 202: operationAnswer },
  errors: [402, 409, 503],
};

/** Those that take no more than their name: one for each such line of the table of operations. */
export const PLAIN_OPERATIONS = PLAIN_KINDS.map((kind) => ({
  kind,
  declared: ofAgent.declare({
    ...operation,
    method: 'POST',
    path: `/api/agents/:id/${kind}`,
    summary: OPERATIONS[kind].summary,
  }),
}));

export const updateRuntime = ofAgent.declare({
  ...operation,
  method: 'POST',
  path: '/api/agents/:id/update',
  summary: 'Update an agent; it goes back by itself when that fails',
  body: updateBody,
});

export const restoreMemory = ofAgent.declare({
  ...operation,
  method: 'POST',
  path: '/api/agents/:id/restore',
  summary: 'Give an agent an archived memory; the present one is archived',
  body: restoreBody,
});

export const setSkill = ofAgent.declare({
  ...operation,
  method: 'PUT',
  path: '/api/agents/:id/skills/:skill',
  summary: 'Change one skill in the configuration of an agent; goes back when that fails',
  params: agentIdParams.extend({ skill: skillName }),
  body: z.object(skillSettings).refine(changesSkill, NO_SKILL_CHANGE),
});

export const setCredential = ofAgent.declare({
  ...operation,
  method: 'PUT',
  path: '/api/agents/:id/credentials/:name',
  summary: "Set or remove an environment variable of an agent's tools; goes back when it fails",
  params: agentIdParams.extend({ name: credentialName }),
  body: z.object({ value: credentialValue }),
});

export const agentArchives = ofAgent.declare({
  method: 'GET',
  path: '/api/agents/:id/archives',
  summary: 'The archived memories of an agent, newest first',
  responses: { 200: archiveList },
});

export const agentOperations = ofAgent.declare({
  method: 'GET',
  path: '/api/agents/:id/operations',
  summary: 'What was done to an agent, newest first',
  query: historyQuery,
  responses: { 200: operationList },
});

/** The changes that the web API forwards for an agent's owner, and adds nothing to. */
export const FOR_OWNERS = [
  ...PLAIN_OPERATIONS.map(({ declared }) => declared),
  updateRuntime,
  restoreMemory,
  deleteAgent,
];

export const setHeartbeat = area({ tag: 'Health', auth: internalKey }).declare({
  method: 'PUT',
  path: '/api/heartbeat',
  summary: "Set how often a user's running agents are asked; what is left out stays",
  body: heartbeatChange,
  responses: { 200: heartbeatSet },
  errors: [404],
});

/** The agent with whose container a page ends. */
const AGENT_ID = z.tuple([z.string()]);

export const runtimeInstances = area({ tag: 'Runtime', auth: internalKey }).declare({
  method: 'GET',
  path: '/api/runtime/instances',
  summary: 'The containers of agents on all Docker hosts that can be reached',
  query: z.object({
    stats: z.enum(['true', 'false']).default('false').describe('With what each uses now'),
    ...pageQuery(AGENT_ID, MAX_PAGE, DEFAULT_PAGE),
  }),
  responses: {
    200: z.strictObject({
      count: z.number().describe('On this page'),
      instances: z.array(
        z.strictObject({
          id: z.string().describe("The agent's id"),
          containerId: z.string(),
          userId: z.string(),
          status: z.string(),
          image: z.string(),
          createdAt: z.iso.datetime(),
          stats: containerStats.nullable().describe('null unless asked for and running'),
        }),
      ),
      unreachable: z.array(z.string()).optional().describe('Hosts whose containers are not listed'),
    }),
  },
});
