import * as z from 'zod';
import { findUser } from '../../src/accounts/accounts/users.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import { performanceOf } from '../../src/agents/metrics/performance.js';
import { METRIC_NAMES, METRICS, metricSeries } from '../../src/agents/metrics/series.js';
import { metricSummary } from '../../src/agents/metrics/summary.js';
import { METRIC_PERIODS, windowOf } from '../../src/agents/metrics/window.js';
import { NotFoundError } from '../../src/lib/errors.js';
import type { Database, TenantDatabase } from '../../src/platform/database/database.js';
import { PLANS } from '../../src/types/plans.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import {
  agentCounts,
  availability,
  incidentCounts,
  latencies,
  p95,
  p99,
  turnCounts,
  usageFigures,
} from '../views/metrics.js';
import type { BackendDependencies } from './dependencies.js';

const PATH = '/api/metrics/:userId';

// PostgreSQL text cannot store NUL.
const storable = z
  .string()
  .regex(/^[^\0]*$/)
  .max(255);

const metrics = area({
  tag: 'Metrics',
  auth: internalKey,
  params: z.object({ userId: storable.describe('The user') }),
});

const period = z
  .enum(METRIC_PERIODS)
  .default('24h')
  .describe('Ends with the step in progress, of 1 or 5 minutes, 1, 4 or 24 hours');

const ofPeriod = { userId: z.string(), period: z.enum(METRIC_PERIODS) };

const agentPerformance = z
  .strictObject({
    agentId: z.string(),
    name: z.string(),
    availability,
    ...turnCounts,
    ...p95,
    crashes: z.int(),
    repairs: z.int(),
  })
  .meta({ id: 'AgentPerformance' });

const series = z
  .strictObject({
    agentId: z.string().nullable().describe('null for the sum over all agents'),
    metric: z.enum(METRIC_NAMES),
    unit: z.enum(METRICS),
    points: z
      .array(z.tuple([z.iso.datetime(), z.number().nullable()]))
      .describe('The beginning of each step, and its value; null without a measurement'),
  })
  .meta({ id: 'MetricSeries' });

/** Creates `GET /api/metrics/:userId/*` (spec 4.15). */
export function metricEndpoints({ database }: Pick<BackendDependencies, 'database'>) {
  return [
    metrics({
      method: 'GET',
      path: `${PATH}/historical`,
      operationId: 'getMetricHistory',
      summary: "Get metrics of a user's agents over time",
      query: z.object({
        period,
        agentId: storable.min(1).optional().describe('One agent; all by default'),
      }),
      responses: {
        200: z.strictObject({
          ...ofPeriod,
          step: z.int().describe('Seconds'),
          from: z.iso.datetime(),
          to: z.iso.datetime().describe('Exclusive'),
          series: z.array(series),
        }),
      },
      async handler({ params: { userId }, query: { agentId, period } }) {
        const tenant = await tenantOf(database, userId);
        if (agentId !== undefined) await getAgent(tenant, agentId);
        const window = windowOf(period, new Date());
        const found = await metricSeries(tenant, userId, window, agentId);
        return reply(200, {
          userId,
          period,
          step: window.step,
          from: window.from.toISOString(),
          to: window.to.toISOString(),
          series: found.map(({ points, ...each }) => ({
            ...each,
            points: points.map(([at, value]): [string, number | null] => [at.toISOString(), value]),
          })),
        });
      },
    }),
    metrics({
      method: 'GET',
      path: `${PATH}/performance`,
      operationId: 'getMetricPerformance',
      summary: "Get the availability, latencies and failures of a user's agents",
      query: z.object({ period }),
      responses: {
        200: z.strictObject({
          ...ofPeriod,
          availability,
          chat: z.strictObject({ ...turnCounts, ...latencies, ...p99 }),
          tools: z.strictObject({
            calls: z.int(),
            successes: z.int(),
            avgMs: z.number().nullable(),
          }),
          provisioning: z.strictObject({ count: z.int(), failed: z.int(), ...latencies }),
          agents: z.array(agentPerformance).describe('The newest 1,000'),
        }),
      },
      async handler({ params: { userId }, query: { period } }) {
        const tenant = await tenantOf(database, userId);
        const now = new Date();
        const found = await performanceOf(tenant, userId, windowOf(period, now), now);
        return reply(200, { userId, period, ...found, agents: [...found.agents] });
      },
    }),
    metrics({
      method: 'GET',
      path: `${PATH}/summary`,
      operationId: 'getMetricSummary',
      summary: "Get a summary of the last 30 days of a user's agents",
      responses: {
        200: z.strictObject({
          userId: z.string(),
          plan: z.enum(PLANS).nullable(),
          agents: agentCounts,
          usage: usageFigures,
          chat: z.strictObject(turnCounts),
          incidents: incidentCounts,
          availability,
        }),
      },
      async handler({ params: { userId } }) {
        const tenant = await tenantOf(database, userId);
        return reply(200, { userId, ...(await metricSummary(tenant, userId, new Date())) });
      },
    }),
  ];
}

/** Returns the database as the user sees it. @throws NotFoundError */
async function tenantOf(database: Database, userId: string): Promise<TenantDatabase> {
  if (!(await findUser(database, userId))) throw new NotFoundError('User not found');
  return database.asUser(userId);
}
