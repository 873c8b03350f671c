import { z } from 'zod';
import { requireDocker } from '../../src/agents/require-docker.js';
import type { ContainerStats } from '../../src/containers/container-view.js';
import { internalKey } from '../auth/internal-key.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { agentIdParams } from '../views/backend-agents.js';
import { containerStats, statsOf } from '../views/container-stats.js';
import { runtimeInstances } from './contract.js';
import type { BackendDependencies } from './dependencies.js';

/** Containers that one call measures: each takes Docker a reading of its own. */
const MAX_MEASURED = 100;

const runtime = area({ tag: 'Runtime', auth: internalKey });

/** `/api/runtime/*`: the runtime's version, and the containers that run it. */
export function runtimeEndpoints({ docker, operations, settings }: BackendDependencies) {
  return [
    runtime({
      method: 'GET',
      path: '/api/runtime/version',
      summary: 'The runtime that new agents get',
      auth: anonymous,
      responses: { 200: z.strictObject({ version: z.string() }) },
      handler: () => reply(200, { version: settings.agents.runtimeVersion }),
    }),
    runtimeInstances.handledBy(async ({ caller, query }) => {
      await requireDocker(docker);
      const all = (await docker.containers.list()).filter(
        ({ userId }) => !caller.user || userId === caller.user.id,
      );
      const measured = new Map<string, ContainerStats | null>();
      if (query.stats === 'true') {
        const running = all.filter(({ status }) => status === 'running').slice(0, MAX_MEASURED);
        await Promise.all(
          running.map(async ({ agentId }) => {
            measured.set(agentId, await statsOf(docker.containers, agentId));
          }),
        );
      }
      const instances = all.map(({ id, agentId, userId, status, image, createdAt }) => ({
        id: agentId,
        containerId: id,
        userId,
        status,
        image,
        createdAt,
        stats: measured.get(agentId) ?? null,
      }));
      return reply(200, { count: instances.length, instances });
    }),
    runtime({
      method: 'GET',
      path: '/api/runtime/instances/:id/stats',
      summary: "What an agent's container uses now",
      params: agentIdParams,
      responses: {
        200: z.strictObject({
          id: z.string(),
          running: z.boolean(),
          stats: containerStats.nullable(),
        }),
      },
      errors: [404],
      async handler({ params, tenant }) {
        const agent = await operations.operable(tenant, params.id);
        const stats = await statsOf(docker.containers, agent.id);
        return reply(200, { id: agent.id, running: stats !== null, stats });
      },
    }),
  ];
}
