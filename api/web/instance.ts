import * as z from 'zod';
import { PLANS } from '../../src/types/plans.js';
import { shownModels } from '../../src/agents/model/agent-model.js';
import { listAgents } from '../../src/agents/agents/agents.js';
import { WEB_STATUSES, webStatus } from '../../src/agents/agents/web-status.js';
import { NotFoundError } from '../../src/lib/errors.js';
import type { Person } from '../auth/session.js';
import { person, planOfPerson } from '../auth/person.js';
import { runtimeInstances } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { MAX_PAGE } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { agentItem, presentItem } from '../views/web-agents.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const instance = area({
  tag: 'Instance',
  auth: person,
  keyScope: 'agents',
  params: z.object({
    userId: z.string().max(64).describe('The user; others than you for admins only'),
  }),
  errors: [404],
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
      responses: {
        200: z.strictObject({
          userId: z.string(),
          plan: z.enum(PLANS).nullable(),
          agents: z.array(agentItem),
          count: z.int(),
          status: z.literal('ok'),
        }),
      },
      async handler({ caller, params: { userId }, tenant }) {
        requireOwn(caller, userId);
        const { items } = await listAgents(tenant, { limit: MAX_PAGE });
        const modelOf = shownModels(ai.router, planOfPerson(caller));
        return reply(200, {
          userId,
          plan: caller.plan ?? null,
          agents: items.map((agent) => presentItem(agent, modelOf(agent), settings)),
          count: items.length,
          status: 'ok',
        });
      },
    }),
    instance({
      method: 'GET',
      path: '/api/instance/:userId/stats',
      operationId: 'getInstanceStats',
      summary: "Current resource usage of a user's agents",
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
        const { userId } = request.params;
        requireOwn(request.caller, userId);
        const query = { stats: 'true', limit: MAX_PAGE } as const;
        const { instances } = await backend.call(request, runtimeInstances, { query });
        const statsOf = new Map(instances.map(({ id, stats }) => [id, stats]));
        const { items } = await listAgents(request.tenant, { limit: MAX_PAGE });
        const agents = items.map(({ id, status }) => {
          const stats = statsOf.get(id);
          return { id, status: webStatus(status), stats: stats ? presentUsage(stats) : null };
        });
        const running = agents.flatMap(({ stats }) => (stats ? [stats] : []));
        const sum = (of: (stats: z.infer<typeof usage>) => number) =>
          running.reduce((total, stats) => total + of(stats), 0);
        return reply(200, {
          userId,
          running: running.length,
          cpuPercent: sum((stats) => stats.cpuPercent),
          memoryBytes: sum((stats) => stats.memoryBytes),
          agents,
          status: 'ok',
        });
      },
    }),
  ];
}

const presentUsage = ({ cpuPercent, memoryBytes, processes }: z.infer<typeof usage>) => ({
  cpuPercent,
  memoryBytes,
  processes,
});

/** Rejects another user's id exactly like an unknown one. */
function requireOwn(caller: Person, userId: string): void {
  if (caller.user.id !== userId) throw new NotFoundError();
}
