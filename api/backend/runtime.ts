import * as z from 'zod';
import { getAgent } from '../../src/agents/agents/agents.js';
import { internalKey } from '../auth/internal-key.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { nextPageLink } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { agentIdParams } from '../views/backend-agents.js';
import { containerStats } from '../views/container-stats.js';
import { runtimeInstances } from './contract.js';
import type { BackendDependencies } from './dependencies.js';

const runtime = area({ tag: 'Runtime', auth: internalKey });

/** Creates the `/api/runtime/*` endpoints: the runtime's version, and the containers that run it. */
export function runtimeEndpoints({ directory }: BackendDependencies) {
  return [
    runtime({
      method: 'GET',
      path: '/api/runtime/version',
      operationId: 'getRuntimeVersion',
      summary: 'Get the runtime version and image of new agents',
      auth: anonymous,
      responses: { 200: z.strictObject({ version: z.string(), image: z.string() }) },
      handler: async () => reply(200, await directory.runtimeOfNewAgents()),
    }),
    runtimeInstances.handledBy(async ({ caller, query }) => {
      const found = await directory.instances({
        userId: caller.user?.id,
        stats: query.stats === 'true',
        limit: query.limit,
        after: query.cursor?.[0],
      });
      const instances = found.items.map(({ id, agentId, ...instance }) => ({
        ...instance,
        id: agentId,
        containerId: id,
      }));
      return reply(
        200,
        { count: instances.length, instances, unreachable: found.unreachable },
        nextPageLink('/api/runtime/instances', query, found.next),
      );
    }),
    runtime({
      method: 'GET',
      path: '/api/runtime/instances/:id/stats',
      operationId: 'getRuntimeInstanceStats',
      summary: "Get the current resource usage of an agent's container",
      params: agentIdParams,
      responses: {
        200: z.strictObject({
          id: z.string(),
          running: z.boolean(),
          stats: containerStats.nullable(),
        }),
      },
      errors: [404, 502, 503],
      async handler({ params, tenant }) {
        const agent = await getAgent(tenant, params.id);
        const host = await directory.withDocker(agent.host);
        const stats = await host.stats(agent.id);
        return reply(200, { id: agent.id, running: stats !== null, stats });
      },
    }),
  ];
}
