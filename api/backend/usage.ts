import * as z from 'zod';
import { lastDays } from '../../src/ai/usage/period.js';
import {
  usageByModel,
  usageByTool,
  usageDaily,
  usageSummary,
  type SummaryUsage,
  type UsageSums,
} from '../../src/ai/usage/reports.js';
import { bearer } from '../auth/bearer.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { nextPageLink, pageQuery, wholeNumber } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { ofTool, perDay, perModel, perModelOfAgent, summaryRow } from './usage-schemas.js';

const PATH = '/api/usage';

const usage = area({ tag: 'Usage', auth: internalKey });

const MAX_DAYS = 366;
/** Maximum number of rows per answer, also the default: clients would add up a report that was cut off earlier. */
const MAX_ROWS = 1_000;

/** Number of days (UTC) up to and including today. */
const days = (usual: number) =>
  wholeNumber('days', { most: MAX_DAYS, usual }).describe('Days (UTC) up to and including today');

// PostgreSQL text cannot store NUL.
const storable = z.string().regex(/^[^\0]*$/);

const agentId = storable.min(1).max(255).describe('The agent, which may be removed by now');

/** Cursor of the summary: the last row of a page. */
const summaryPosition = z.tuple([z.iso.date(), storable, storable, storable]);

/** Creates `GET /api/usage/*` (spec 4.13); includes calls that are not yet added to their day. */
export function usageEndpoints() {
  return [
    usage({
      method: 'GET',
      path: `${PATH}/summary`,
      operationId: 'getUsageSummary',
      summary: 'List usage by day, agent and model, newest day first',
      query: z.object({ days: days(30), ...pageQuery(summaryPosition, MAX_ROWS) }),
      responses: { 200: z.array(summaryRow) },
      async handler({ query, tenant }) {
        const { cursor, limit } = query;
        const page = { limit: limit + 1, after: cursor && placeOf(cursor) };
        // One extra row shows whether there is a next page.
        const found = await usageSummary(tenant, lastDays(query.days, new Date()), page);
        const rows = found.slice(0, limit);
        const last = found.length > limit ? rows.at(-1) : undefined;
        return reply(
          200,
          rows.map((row) => ({
            date: row.day,
            agent_id: row.agentId === '' ? null : row.agentId,
            model: row.model,
            provider: row.provider,
            ...sums(row),
            turn_count: row.calls,
          })),
          nextPageLink(`${PATH}/summary`, query, last && positionOf(last)),
        );
      },
    }),
    usage({
      method: 'GET',
      path: `${PATH}/by-agent/:agentId`,
      operationId: 'getAgentUsage',
      summary: "List an agent's usage by model, highest cost first",
      params: z.object({ agentId }),
      query: z.object({ days: days(30) }),
      responses: { 200: z.array(perModelOfAgent) },
      async handler({ params, query, tenant }) {
        const period = lastDays(query.days, new Date());
        const rows = await usageByModel(tenant, period, params.agentId);
        return reply(
          200,
          rows.map((row) => ({ ...model(row), ...sums(row), events: row.calls })),
        );
      },
    }),
    usage({
      method: 'GET',
      path: `${PATH}/by-model`,
      operationId: 'getUsageByModel',
      summary: 'List usage by model, highest cost first',
      query: z.object({ days: days(30) }),
      responses: { 200: z.array(perModel) },
      async handler({ query, tenant }) {
        const rows = await usageByModel(tenant, lastDays(query.days, new Date()));
        return reply(
          200,
          rows.map((row) => ({ ...model(row), ...sums(row), turns: row.calls })),
        );
      },
    }),
    usage({
      method: 'GET',
      path: `${PATH}/daily`,
      operationId: 'getDailyUsage',
      summary: 'List usage by day, for days with calls, oldest day first',
      query: z.object({ days: days(7) }),
      responses: { 200: z.array(perDay) },
      async handler({ query, tenant }) {
        const rows = await usageDaily(tenant, lastDays(query.days, new Date()));
        return reply(
          200,
          rows.map(({ day, totalTokens, costUsd, calls }) => ({
            date: day,
            total_tokens: totalTokens,
            cost_usd: costUsd,
            turns: calls,
          })),
        );
      },
    }),
    usage({
      method: 'GET',
      path: `${PATH}/tools`,
      operationId: 'getToolUsage',
      summary: 'List calls of tools by name, most calls first',
      auth: bearer,
      keyScope: 'ai',
      query: z.object({ days: days(7), agentId: agentId.optional() }),
      responses: { 200: z.array(ofTool) },
      async handler({ query, tenant }) {
        const period = lastDays(query.days, new Date());
        const rows = await usageByTool(tenant, period, query.agentId);
        return reply(
          200,
          rows.map(({ tool, calls, successes, averageMs }) => ({
            tool_name: tool,
            calls,
            successes,
            avg_ms: averageMs,
          })),
        );
      },
    }),
  ];
}

const model = (row: { model: string; provider: string }) => ({
  model: row.model,
  provider: row.provider,
});

const sums = ({ inputTokens, outputTokens, totalTokens, costUsd }: UsageSums) => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  total_tokens: totalTokens,
  cost_usd: costUsd,
});

const positionOf = ({ day, agentId, provider, model }: SummaryUsage) => [
  day,
  agentId,
  provider,
  model,
];

const placeOf = ([day, agentId, provider, model]: z.infer<typeof summaryPosition>) => ({
  day,
  agentId,
  provider,
  model,
});
