import * as z from 'zod';
import { discloseGatewayToken } from '../../src/agents/credentials/agent-secrets.js';
import { addressOf } from '../../src/agents/address/agent-address.js';
import { findVerification } from '../../src/agents/verification/verifications.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import { listMessages } from '../../src/agents/chat/messages.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { agentUrl } from '../views/agent-url.js';
import { messageItem, messagesQuery, presentMessage } from '../views/messages.js';
import { agentIdParams, agentStatus } from '../views/backend-agents.js';
import { containerStats } from '../views/container-stats.js';
import type { BackendDependencies } from './dependencies.js';
import { agentVerification, presentVerification } from '../views/verification.js';
import { unverifyAgent, verifyAgent } from './contract.js';
import { requestedBy } from './requested-by.js';

const ofAgent = area({ tag: 'Agents', auth: internalKey, params: agentIdParams, errors: [404] });

/** Creates `GET /api/agents/:id/messages|stats|token|verification` and `verify` (spec 4.15). */
export function agentViewEndpoints({
  settings,
  directory,
  secrets,
  verifications,
}: BackendDependencies) {
  return [
    ofAgent({
      method: 'GET',
      path: '/api/agents/:id/verification',
      operationId: 'getAgentVerification',
      summary: "Get an agent's current verification",
      responses: { 200: agentVerification },
      handler: async ({ params, tenant }) =>
        reply(200, presentVerification(await findVerification(tenant, params.id))),
    }),
    verifyAgent.handledBy(async (request) => {
      const { params, signal } = request;
      const found = await verifications.verify(requestedBy(request), params.id, signal);
      return reply(200, presentVerification(found));
    }),
    unverifyAgent.handledBy(async (request) => {
      await verifications.remove(requestedBy(request), request.params.id);
      return reply(200, { success: true as const });
    }),
    ofAgent({
      method: 'GET',
      path: '/api/agents/:id/messages',
      operationId: 'listAgentMessages',
      summary: "List an agent's messages, oldest first",
      query: z.object(messagesQuery),
      responses: { 200: z.strictObject({ messages: z.array(messageItem) }) },
      async handler({ params, query, tenant }) {
        const agent = await getAgent(tenant, params.id);
        const messages = await listMessages(tenant, agent.id, query);
        return reply(200, { messages: messages.map(presentMessage) });
      },
    }),
    ofAgent({
      method: 'GET',
      path: '/api/agents/:id/stats',
      operationId: 'getAgentStats',
      summary: 'Get the current resource usage of an agent',
      errors: [502, 503],
      responses: {
        200: z.strictObject({
          id: z.string(),
          status: agentStatus,
          container: containerStats.nullable().describe('null unless the agent runs'),
        }),
      },
      async handler({ params, tenant }) {
        const agent = await getAgent(tenant, params.id);
        const host = await directory.withDocker(agent.host);
        const container = await host.stats(agent.id);
        return reply(200, { id: agent.id, status: agent.status, container });
      },
    }),
    ofAgent({
      method: 'GET',
      path: '/api/agents/:id/token',
      operationId: 'getAgentToken',
      summary: "Read an agent's gateway token; every read is audited",
      responses: {
        200: z.strictObject({ id: z.string(), token: z.string(), websocketUrl: agentUrl }),
      },
      async handler(request) {
        const agent = await getAgent(request.tenant, request.params.id);
        const token = await discloseGatewayToken(requestedBy(request), secrets, agent);
        const { websocketUrl } = addressOf(agent, settings.http.agentsAt);
        return reply(200, { id: agent.id, token, websocketUrl });
      },
    }),
  ];
}
