import * as z from 'zod';
import { PLANS } from '../../src/types/plans.js';
import { shownModels } from '../../src/agents/model/agent-model.js';
import { listAgents } from '../../src/agents/agents/agents.js';
import { WEB_STATUSES, webStatus } from '../../src/agents/agents/web-status.js';
import { UnavailableError } from '../../src/lib/errors.js';
import { person, planOfPerson } from '../auth/person.js';
import { runtimeInstances } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { MAX_PAGE, nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { agentItem, presentItem } from '../views/web-agents.js';
import type { BackendClient, CallContext } from './backend-client.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/instance';

/** Maximum number of pages of containers, far more than a user has agents. */
const MAX_PAGES = 100;

const instance = area({
  tag: 'Instance',
  auth: person,
  keyScope: 'agents',
  params: z.object({ userId: z.string().max(64).describe('Your id') }),
  limit: LIMITS.instance,
});

const usage = z
  .strictObject({
    cpuPercent: z.number(),
    memoryBytes: z.number(),
    processes: z.int(),
  })
  .meta({ id: 'AgentResources' });

/** Creates `GET /api/instance/:userId` and `/stats`, which combine all of a user's agents. */
export function instanceEndpoints({ ai, backend, settings }: WebDependencies) {
  return [
    instance({
      method: 'GET',
      path: '/api/instance/:userId',
      operationId: 'getInstance',
      summary: "Get a user's agents and plan",
      query: z.object(page),
      responses: {
        200: z.strictObject({
          userId: z.string(),
          plan: z.enum(PLANS).nullable(),
          agents: z.array(agentItem),
          count: z.int().describe('Number of agents on this page'),
          status: z.literal('ok'),
        }),
      },
      async handler({ caller, params: { userId }, query, tenant }) {
        const { items, next } = await listAgents(tenant, pageOf(query));
        const modelOf = shownModels(ai.router, planOfPerson(caller));
        const answer = {
          userId,
          plan: caller.plan ?? null,
          agents: items.map((agent) => presentItem(agent, modelOf(agent), settings)),
          count: items.length,
          status: 'ok',
        } as const;
        return reply(200, answer, nextPageLink(`${PATH}/${userId}`, query, next));
      },
    }),
    instance({
      method: 'GET',
      path: '/api/instance/:userId/stats',
      operationId: 'getInstanceStats',
      summary: "Get the current resource usage of a user's agents; the sums cover all agents",
      query: z.object(page),
      responses: {
        200: z.strictObject({
          userId: z.string(),
          running: z.int(),
          cpuPercent: z.number().describe('Sum over the agents; 100 is one core fully used'),
          memoryBytes: z.number(),
          agents: z.array(
            z.strictObject({
              id: z.string(),
              status: z.enum(WEB_STATUSES),
              stats: usage.nullable().describe('null unless the container is running'),
            }),
          ),
          status: z.literal('ok'),
        }),
      },
      errors: errorsOf(runtimeInstances),
      async handler(request) {
        const { params, query, tenant } = request;
        const { userId } = params;
        const statsOf = await runningAgents(backend, request);
        const { items, next } = await listAgents(tenant, pageOf(query));
        const agents = items.map(({ id, status }) => {
          const stats = statsOf.get(id);
          return { id, status: webStatus(status), stats: stats ? presentUsage(stats) : null };
        });
        const running = [...statsOf.values()];
        const sum = (of: (stats: Measured) => number) =>
          running.reduce((total, stats) => total + of(stats), 0);
        const answer = {
          userId,
          running: running.length,
          cpuPercent: sum((stats) => stats.cpuPercent),
          memoryBytes: sum((stats) => stats.memoryBytes),
          agents,
          status: 'ok',
        } as const;
        return reply(200, answer, nextPageLink(`${PATH}/${userId}/stats`, query, next));
      },
    }),
  ];
}

const pageOf = ({ cursor, limit }: z.infer<z.ZodObject<typeof page>>) => ({
  limit,
  after: cursor,
});

type Measured = z.infer<typeof usage>;

/** Measures all of a user's running agents, by id, a page at a time. */
async function runningAgents(
  backend: BackendClient,
  context: CallContext,
): Promise<ReadonlyMap<string, Measured>> {
  const measured = new Map<string, Measured>();
  let cursor: [string] | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const query = { stats: 'true', limit: MAX_PAGE, cursor } as const;
    const { instances } = await backend.call(context, runtimeInstances, { query });
    for (const { id, stats } of instances) if (stats) measured.set(id, stats);
    const last = instances.at(-1);
    if (instances.length < MAX_PAGE || !last) return measured;
    cursor = [last.id];
  }
  throw new UnavailableError('There are too many agents to measure at once');
}

const presentUsage = ({ cpuPercent, memoryBytes, processes }: Measured) => ({
  cpuPercent,
  memoryBytes,
  processes,
});
