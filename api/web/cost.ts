import type { Logger } from 'pino';
import { BaseError } from 'sequelize';
import * as z from 'zod';
import { costDashboard } from '../../src/ai/usage/cost-dashboard.js';
import { lastDays, monthToDate } from '../../src/ai/usage/period.js';
import { sampleCosts } from '../../src/ai/usage/sample-costs.js';
import { person } from '../auth/person.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';

const PERIODS = {
  '7d': (now: Date) => lastDays(7, now),
  '30d': (now: Date) => lastDays(30, now),
  mtd: monthToDate,
};

const SAMPLE_MESSAGE =
  'No usage yet: these are sample figures. Your own appear after your first call.';

const cost = z.number().describe('US dollars, at most six decimals');

const dashboard = z
  .strictObject({
    period: z.string(),
    summary: z.strictObject({
      totalCost: cost,
      totalTokens: z.int(),
      totalCalls: z.int(),
      avgCostPerCall: cost,
    }),
    agents: z
      .array(
        z.strictObject({
          name: z.string().describe('`API` for calls without an agent'),
          tokens: z.int(),
          cost,
          calls: z.int(),
          avgCostPerCall: cost,
          model: z.string().describe('The model with the highest cost'),
        }),
      )
      .describe('Highest cost first'),
    daily: z
      .array(z.strictObject({ date: z.iso.date(), cost, tokens: z.int() }))
      .describe('Every day of the period (UTC), oldest first'),
    modelBreakdown: z
      .array(
        z.strictObject({
          model: z.string(),
          percent: z
            .number()
            .describe('Share of the total cost; all add up to 100, or are 0 if the total is 0'),
          cost,
        }),
      )
      .describe('Highest cost first'),
    isMockData: z
      .boolean()
      .describe('True for sample figures, shown to users who have never made a call'),
    message: z.string().optional(),
  })
  .meta({ id: 'Costs' });

/** Creates `GET /api/dashboard/cost` (spec 4.13). */
export function costEndpoints({ log }: Pick<WebDependencies, 'log'>) {
  return [
    endpoint({
      method: 'GET',
      path: '/api/dashboard/cost',
      operationId: 'getCost',
      summary: 'Get the cost of your AI calls by agent, day and model',
      tag: 'Usage',
      auth: person,
      keyScope: 'ai',
      query: z.object({
        period: z
          .enum(['7d', '30d', 'mtd'])
          .default('7d')
          .describe('The last 7 or 30 days including today, or this month up to today (UTC)'),
      }),
      responses: { 200: dashboard },
      async handler({ query: { period }, tenant }) {
        const days = PERIODS[period](new Date());
        const costs = await loggingFailures(log, () => costDashboard(tenant, days));
        log.info(`[Cost API] Found ${costs?.summary.totalCalls ?? 0} usage logs`);
        if (costs) return reply(200, { period, ...costs, isMockData: false });
        const samples = sampleCosts(days);
        return reply(200, { period, ...samples, isMockData: true, message: SAMPLE_MESSAGE });
      },
    }),
  ];
}

/** Logs failures in the lines that the contract fixes, including the names of tools. */
async function loggingFailures<T>(log: Logger, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const ofDatabase = error instanceof BaseError;
    log.error(ofDatabase ? `[Cost API] Prisma error: ${message}` : `[Cost API] Error: ${message}`);
    throw error;
  }
}
