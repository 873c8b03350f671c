import { z } from 'zod';
import { BadRequestError } from '../../src/errors.js';
import { lastDays } from '../../src/usage/period.js';
import {
  usageByModel,
  usageDaily,
  usageSummary,
  type SummaryUsage,
  type UsageSums,
} from '../../src/usage/reports.js';
import { internalKey } from '../auth/internal-key.js';
import { endpoint } from '../http/endpoint.js';
import { decodeCursor, encodeCursor, nextPageLink } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { ofTool, perDay, perModel, perModelOfAgent, summaryRow } from './usage-schemas.js';

const PATH = '/api/usage';
const TAG = 'Usage';

const MAX_DAYS = 366;
/** Rows of one answer: a report that is cut off early by default would only be added up wrongly. */
const MAX_ROWS = 1_000;

const wholeNumber = (name: string, max: number, usual: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, { error: `${name} must be a whole number from 1 to ${max}` })
    .transform(Number)
    .pipe(z.number().min(1).max(max))
    .default(usual);

/** Days until today (UTC), today included. */
const days = (usual: number) => wholeNumber('days', MAX_DAYS, usual);

// The database takes no NUL.
const agentId = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\0]*$/);

/**
 * `GET /api/usage/*` (spec 4.13): of the user that the caller speaks for, or of all. Exact as of the
 * request, also for calls that no pass has added to their day yet.
 */
export function usageEndpoints() {
  return [
    endpoint({
      method: 'GET',
      path: `${PATH}/summary`,
      summary: 'What was used, by day, agent and model; the last day first',
      tag: TAG,
      auth: internalKey,
      query: z.object({
        days: days(30),
        limit: wholeNumber('limit', MAX_ROWS, MAX_ROWS),
        cursor: z.string().min(1).max(2_000).optional(),
      }),
      responses: { 200: z.array(summaryRow) },
      async handler({ query, tenant }) {
        const { cursor, limit } = query;
        const page = {
          limit: limit + 1,
          after: cursor === undefined ? undefined : placeOf(cursor),
        };
        // One more than asked for tells whether there is a next page.
        const found = await usageSummary(tenant, lastDays(query.days, new Date()), page);
        const rows = found.slice(0, limit);
        const last = found.length > limit ? rows.at(-1) : undefined;
        const next = { days: query.days, limit };
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
          nextPageLink(`${PATH}/summary`, next, last && cursorOf(last)),
        );
      },
    }),
    endpoint({
      method: 'GET',
      path: `${PATH}/by-agent/:agentId`,
      summary: 'What an agent used of each model; what cost most first',
      tag: TAG,
      auth: internalKey,
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
    endpoint({
      method: 'GET',
      path: `${PATH}/by-model`,
      summary: 'What was used of each model; what cost most first',
      tag: TAG,
      auth: internalKey,
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
    endpoint({
      method: 'GET',
      path: `${PATH}/daily`,
      summary: 'What was used on each day with calls; the first day first',
      tag: TAG,
      auth: internalKey,
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
    endpoint({
      method: 'GET',
      path: `${PATH}/tools`,
      summary: 'What tools were called: none, as calls of tools are not recorded',
      tag: TAG,
      auth: internalKey,
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

const cursorOf = ({ day, agentId, provider, model }: SummaryUsage) =>
  encodeCursor([day, agentId, provider, model]);

/** @throws BadRequestError for a cursor that no page has named. */
function placeOf(cursor: string) {
  const place = decodeCursor(cursor, 4);
  const [day = '', agentId = '', provider = '', model = ''] = place;
  if (!z.iso.date().safeParse(day).success || place.some((part) => part.includes('\0'))) {
    throw new BadRequestError('cursor is not valid');
  }
  return { day, agentId, provider, model };
}
