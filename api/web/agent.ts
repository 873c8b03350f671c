import { webStatus } from '../../src/agents/agents/web-status.js';
import * as z from 'zod';
import { listCredentials } from '../../src/agents/credentials/agent-credentials.js';
import { skillsIn } from '../../src/agents/model/agent-skills.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import { person } from '../auth/person.js';
import {
  changesSkill,
  credentialName,
  credentialValue,
  NO_SKILL_CHANGE,
  skillName,
  skillSettings,
} from '../views/agent-tools.js';
import { setCredential, setSkill } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { operationAnswer, waitQuery } from '../views/operations.js';
import { reply } from '../http/reply.js';
import { agentStatus } from '../views/web-agents.js';
import { answerChat, chatAnswer, chatQuestion } from './chat-answer.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const ACTIONS = ['chat', 'create-session', 'update-skill', 'set-credential'] as const;

const agentId = z.string().max(64).describe('The agent');

const action = z.discriminatedUnion(
  'action',
  [
    z.object({ action: z.literal('chat'), ...chatQuestion }),
    z.object({ action: z.literal('create-session'), agentId }),
    z
      .object({ action: z.literal('update-skill'), agentId, skill: skillName, ...skillSettings })
      .refine(changesSkill, NO_SKILL_CHANGE),
    z.object({
      action: z.literal('set-credential'),
      agentId,
      name: credentialName,
      value: credentialValue,
    }),
  ],
  { error: `action must be one of ${ACTIONS.join(', ')}` },
);

const interaction = z.strictObject({
  agentId: z.string(),
  status: agentStatus,
  actions: z.array(z.enum(ACTIONS)).describe('Actions that are possible now'),
  skills: z
    .array(z.strictObject({ name: z.string(), enabled: z.boolean() }))
    .describe("Skills in the agent's configuration"),
  credentials: z.array(z.strictObject({ name: z.string(), updatedAt: z.iso.datetime() })),
});

const conversationBegun = z
  .strictObject({
    agentId: z.string(),
    conversation: z.string().describe('Conversation for the first `chat`'),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'BegunConversation' });

const interactions = area({
  tag: 'Chat',
  auth: person,
  keyScope: 'agents',
  errors: [404],
  limit: LIMITS.agent,
});

/** Creates `GET|POST /api/agent` (spec 4.15). */
export function agentInteractionEndpoints(dependencies: WebDependencies) {
  const { backend } = dependencies;

  return [
    interactions({
      method: 'GET',
      path: '/api/agent',
      operationId: 'listAgentActions',
      summary: 'List the actions that an agent can run now, with its skills and credentials',
      query: z.object({ agentId }),
      responses: { 200: interaction },
      async handler({ query, tenant }) {
        const agent = await getAgent(tenant, query.agentId);
        const credentials = await listCredentials(tenant, agent.id);
        const status = webStatus(agent.status);
        return reply(200, {
          agentId: agent.id,
          status,
          actions: ACTIONS.filter((name) => name !== 'chat' || status === 'running'),
          skills: skillsIn(agent.config),
          credentials: credentials.map(({ name, updatedAt }) => ({
            name,
            updatedAt: updatedAt.toISOString(),
          })),
        });
      },
    }),
    interactions({
      method: 'POST',
      path: '/api/agent',
      operationId: 'runAgentAction',
      summary:
        'Send a message to an agent, begin a conversation, change a skill, or set a credential',
      idempotent: true,
      headers: z.object({ accept: z.string().optional() }),
      query: waitQuery,
      body: action,
      responses: { 200: [chatAnswer, 'stream'], 201: conversationBegun, 202: operationAnswer },
      errors: [...errorsOf(setSkill, setCredential), 409, 503],
      async handler(request) {
        const { body, query, tenant } = request;
        if (body.action === 'chat') return answerChat(dependencies, request, body);
        const { id } = await getAgent(tenant, body.agentId);
        switch (body.action) {
          case 'create-session':
            return reply(201, {
              agentId: id,
              conversation: request.idempotencyId,
              createdAt: new Date().toISOString(),
            });
          case 'update-skill': {
            const { skill, enabled, config } = body;
            const sent = { params: { id, skill }, query, body: { enabled, config } };
            return reply(202, await backend.call(request, setSkill, sent));
          }
          case 'set-credential': {
            const sent = { params: { id, name: body.name }, query, body: { value: body.value } };
            return reply(202, await backend.call(request, setCredential, sent));
          }
        }
      },
    }),
  ];
}
