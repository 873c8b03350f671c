import * as z from 'zod';
import { getAgent } from '../../src/agents/agents/agents.js';
import { colonyChecks } from '../../src/fleet/colony-diagnostics.js';
import { attentionOf, soulState } from '../../src/fleet/colony-soul.js';
import { colonyTree } from '../../src/fleet/colony-tree.js';
import { BadGatewayError, BadRequestError, ServiceError } from '../../src/lib/errors.js';
import { ScopeRequiredError } from '../auth/key-scope.js';
import { person, type ProgramCaller } from '../auth/person.js';
import type { SessionCaller } from '../auth/session.js';
import { BROWSE_MS } from '../backend/browse-contract.js';
import { getMemory } from '../backend/memory-contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import type { EndpointRequest } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { colonyStatus, presentNode } from '../views/colony.js';
import type { BackendClient } from './backend-client.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const SOUL = 'SOUL.md';

const colony = area({
  tag: 'Fleet',
  auth: person,
  keyScope: 'agents',
  limitOfCaller: LIMITS.fleetOfUser,
});

/** Creates `GET /api/colony/status` (spec 4.15). */
export function colonyEndpoints({ backend }: Pick<WebDependencies, 'backend'>) {
  return [
    colony({
      method: 'GET',
      path: '/api/colony/status',
      operationId: 'getColonyStatus',
      summary:
        'Get the parents and clones of your agents, the state of one agent, or checks of all',
      query: z.object({
        view: z
          .enum(['tree', 'soul', 'diagnostics'])
          .default('tree')
          .describe('`soul` needs `agentId`; an API key also needs the scope `files`'),
        agentId: z.string().max(64).optional().describe('The agent of `soul`'),
      }),
      responses: { 200: colonyStatus },
      errors: errorsOf(getMemory),
      async handler(request) {
        const { caller, query, tenant } = request;
        switch (query.view) {
          case 'tree': {
            const { roots, ...rest } = await colonyTree(tenant, caller.user.id);
            const shown = roots.map(presentNode);
            const timestamp = new Date().toISOString();
            return reply(200, { view: 'tree', timestamp, ...rest, roots: shown });
          }
          case 'soul':
            return reply(200, await soulOf(backend, request, query.agentId));
          case 'diagnostics': {
            const checks = await colonyChecks(tenant, caller.user.id);
            return reply(200, {
              view: 'diagnostics',
              healthy: checks.every(({ ok }) => ok),
              checks: checks.map((check) => ({ ...check, agents: [...check.agents] })),
            });
          }
        }
      },
    }),
  ];
}

type ColonyRequest = EndpointRequest<SessionCaller | ProgramCaller>;

async function soulOf(
  backend: BackendClient,
  request: Pick<
    ColonyRequest,
    'caller' | 'clientAddress' | 'idempotencyId' | 'requestId' | 'signal' | 'tenant'
  >,
  agentId: string | undefined,
) {
  const { caller, signal, tenant } = request;
  // A memory is a file of the agent.
  if (caller.kind === 'api-key' && !caller.scopes.includes('files')) {
    throw new ScopeRequiredError('files');
  }
  if (agentId === undefined) throw new BadRequestError('agentId is required');
  const agent = await getAgent(tenant, agentId);
  const attention = await attentionOf(tenant, agentId);
  const read = (path?: string) =>
    backend.call(request, getMemory, { query: { agentId, path }, signal, timeoutMs: BROWSE_MS });
  const listing = await read();
  if (!('files' in listing)) throw new BadGatewayError('The backend sent an invalid answer');
  const { files } = listing;
  const hasSoul = files.some(({ path }) => path === SOUL);
  const modified = files.map((file) => file.modified).toSorted();
  return {
    view: 'soul' as const,
    agentId,
    state: soulState(agent, attention, new Date()),
    soul: hasSoul ? await readSoul(() => read(SOUL)) : null,
    memory: {
      files: files.length,
      bytes: files.reduce((sum, { size }) => sum + size, 0),
      lastModified: modified.at(-1) ?? null,
    },
    attention: {
      lastMessageAt: attention.lastMessageAt?.toISOString() ?? null,
      lastHeartbeatAt: attention.lastHeartbeatAt?.toISOString() ?? null,
      lastTaskAt: attention.lastTaskAt?.toISOString() ?? null,
    },
  };
}

type MemoryAnswer = z.output<(typeof getMemory)['responses'][200]>;

/** Returns the soul's text; null if the file was removed since it was listed. */
async function readSoul(read: () => Promise<MemoryAnswer>) {
  try {
    const file = await read();
    if (!('content' in file)) throw new BadGatewayError('The backend sent an invalid answer');
    const { content, encoding, modified, path } = file;
    // A file that is not UTF-8 is shown with replacement characters.
    const text = encoding === 'base64' ? Buffer.from(content, 'base64').toString() : content;
    return { path, content: text, modified };
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return null;
    throw error;
  }
}
