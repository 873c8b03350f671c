import * as z from 'zod';
import { addressOf, subdomainIn } from '../../src/agents/address/agent-address.js';
import { openingPath } from '../../src/agents/address/owner-ticket.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import { discloseGatewayToken } from '../../src/agents/credentials/agent-secrets.js';
import { NotFoundError, UnavailableError } from '../../src/lib/errors.js';
import type { AgentRow } from '../../src/platform/database/models.js';
import type { Requester } from '../../src/platform/audit/requester.js';
import { anonymous } from '../auth/anonymous.js';
import { freshSession } from '../auth/fresh-session.js';
import type { SessionCaller } from '../auth/session.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { agentUrl } from '../views/agent-url.js';
import { agentIdParams } from '../views/web-agents.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const access = area({
  tag: 'Agents',
  auth: freshSession,
  params: agentIdParams,
  errors: [404],
  limit: LIMITS.agents,
});

const addresses = area({ tag: 'Agents', auth: anonymous });

/** Creates `/api/agents/:id/token|open`, ways for an owner to the agent's gateway, and `/api/agents/address`. */
export function agentAccessEndpoints({ agentsBySubdomain, secrets, settings }: WebDependencies) {
  const { agentsAt } = settings.http;
  const disclose = ({ caller, requestId, tenant }: AccessRequest, agent: AgentRow) =>
    discloseGatewayToken({ actor: caller.user.id, requestId, tenant }, secrets, agent);

  return [
    addresses({
      method: 'GET',
      path: '/api/agents/address',
      operationId: 'checkAgentAddress',
      summary:
        'Check whether an agent has this host name, for proxies that make certificates on demand',
      query: z.object({ domain: z.string().max(255).describe('The host name of a certificate') }),
      errors: [404],
      responses: { 200: z.strictObject({ domain: z.string() }) },
      async handler({ query: { domain } }) {
        const subdomain = agentsAt && subdomainIn(agentsAt.domain, domain);
        const found = subdomain === undefined ? undefined : await agentsBySubdomain.find(subdomain);
        if (!found) throw new NotFoundError('No agent has this address');
        return reply(200, { domain });
      },
    }),
    access({
      method: 'GET',
      path: '/api/agents/:id/token',
      operationId: 'getAgentToken',
      summary: "Read your agent's gateway token; every read is audited",
      responses: {
        200: z.strictObject({ id: z.string(), token: z.string(), websocketUrl: agentUrl }),
      },
      async handler(request) {
        const agent = await getAgent(request.tenant, request.params.id);
        const token = await disclose(request, agent);
        const { websocketUrl } = addressOf(agent, agentsAt);
        return reply(200, { id: agent.id, token, websocketUrl });
      },
    }),
    access({
      method: 'POST',
      path: '/api/agents/:id/open',
      operationId: 'openAgent',
      summary: "Make a link that opens your agent's Control UI signed in, within a minute; audited",
      errors: [503],
      responses: {
        200: z.strictObject({
          url: z.string().describe('Contains the gateway token in its fragment: keep it secret'),
        }),
      },
      async handler(request) {
        const agent = await getAgent(request.tenant, request.params.id);
        const { url } = addressOf(agent, agentsAt);
        if (url === null) {
          throw new UnavailableError('Agents have no address here: AGENT_DOMAIN is not set');
        }
        const token = await disclose(request, agent);
        // A fragment reaches no server: OpenClaw's page reads the token from it.
        return reply(200, { url: `${url}${openingPath(secrets, agent.id)}#token=${token}` });
      },
    }),
  ];
}

type AccessRequest = Pick<Requester, 'requestId' | 'tenant'> & { readonly caller: SessionCaller };
