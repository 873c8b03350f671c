import * as z from 'zod';
import { lastDays } from '../../src/ai/usage/period.js';
import {
  usageByModel,
  usageDaily,
  usageSummary,
  type SummaryUsage,
  type UsageSums,
} from '../../src/ai/usage/reports.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { nextPageLink, pageQuery, wholeNumber } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { ofTool, perDay, perModel, perModelOfAgent, summaryRow } from './usage-schemas.js';

const PATH = '/api/usage';

const usage = area({ tag: 'Usage', auth: internalKey });

const MAX_DAYS = 366;
/** Rows of one answer: a report that is cut off early by default would only be added up wrongly. */
const MAX_ROWS = 1_000;

/** Days until today (UTC), today included. */
const days = (usual: number) => wholeNumber('days', { most: MAX_DAYS, usual });

// The database takes no NUL.
const storable = z.string().regex(/^[^\0]*$/);

const agentId = storable.min(1).max(255);

/** The row that a page of the summary ends with. */
const summaryPosition = z.tuple([z.iso.date(), storable, storable, storable]);

/**
 * `GET /api/usage/*` (spec 4.13): of the user that the caller speaks for, or of all. Exact as of the
 * request, also for calls that no pass has added to their day yet.
 */
export function usageEndpoints() {
  return [
    usage({
      method: 'GET',
      path: `${PATH}/summary`,
      summary: 'What was used, by day, agent and model; the last day first',
      query: z.object({
        days: days(30),
        ...pageQuery(summaryPosition, MAX_ROWS),
      }),
      responses: { 200: z.array(summaryRow) },
      async handler({ query, tenant }) {
        const { cursor, limit } = query;
        const page = {
          limit: limit + 1,
          after: cursor && placeOf(cursor),
        };
        // One more than asked for tells whether there is a next page.
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
      summary: 'What an agent used of each model; what cost most first',
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
      summary: 'What was used of each model; what cost most first',
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
      summary: 'What was used on each day with calls; the first day first',
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
      summary: 'What tools were called: none, as calls of tools are not recorded',
      query: z.object({ days: days(7), agentId: agentId.optional() }),
      responses: { 200: z.array(ofTool) },
      handler: () => reply(200, []),
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
