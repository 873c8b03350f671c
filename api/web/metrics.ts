import * as z from 'zod';
import { metricOverview } from '../../src/agents/metrics/overview.js';
import { ForbiddenError } from '../../src/lib/errors.js';
import { person } from '../auth/person.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import {
  agentCounts,
  incidentCounts,
  latencies,
  turnCounts,
  usageFigures,
} from '../views/metrics.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const metrics = area({ tag: 'Metrics', auth: person, keyScope: 'agents' });

/** Null unless an agent was measured. */
const measured = z.number().nullable();

/** Creates `GET /api/metrics` (spec 4.15). */
export function metricEndpoints({ database }: Pick<WebDependencies, 'database'>) {
  return [
    metrics({
      method: 'GET',
      path: '/api/metrics',
      operationId: 'getMetrics',
      summary:
        'Get the current state and the last 24 hours of your agents, or for administrators of all agents',
      query: z.object({
        scope: z
          .enum(['user', 'platform'])
          .default('user')
          .describe('`platform` is for administrators'),
      }),
      limitOfCaller: LIMITS.metricsOfUser,
      responses: {
        200: z.strictObject({
          scope: z.enum(['user', 'platform']),
          timestamp: z.iso.datetime(),
          agents: agentCounts,
          usage24h: usageFigures,
          chat24h: z.strictObject({ ...turnCounts, ...latencies }),
          incidents24h: incidentCounts,
          resources: z
            .strictObject({
              cpuPercent: measured.describe('100 is one core; null if no agent was measured'),
              memoryBytes: measured,
              memoryLimitBytes: measured,
            })
            .describe('Sums over running agents'),
        }),
      },
      errors: [403],
      async handler({ caller, query: { scope }, tenant }) {
        const isOfAll = scope === 'platform';
        if (isOfAll && !caller.user.isAdmin) {
          throw new ForbiddenError('Administrator access required', 'ADMIN_REQUIRED');
        }
        const now = new Date();
        const overview = await metricOverview(isOfAll ? database.asPlatform() : tenant, now);
        return reply(200, { scope, timestamp: now.toISOString(), ...overview });
      },
    }),
  ];
}
