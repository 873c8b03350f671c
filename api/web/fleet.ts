import * as z from 'zod';
import { listBookings } from '../../src/fleet/bookings.js';
import { COST_PERIODS, fleetCosts } from '../../src/fleet/fleet-costs.js';
import { fleetGraph } from '../../src/fleet/fleet-graph.js';
import { getTrace, listTraces } from '../../src/fleet/traces.js';
import { person } from '../auth/person.js';
import { readTrace } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { DEFAULT_PAGE, MAX_PAGE, nextPageLink, page, pageQuery } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { booking, fleetCost, graph, presentBooking, presentTrace, trace } from '../views/fleet.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/mission-control/fleet';

const fleet = area({
  tag: 'Fleet',
  auth: person,
  keyScope: 'agents',
  limitOfCaller: LIMITS.fleetOfUser,
});

/** Position in the list of bookings: time, both agents, booking. */
const BOOKING = z.tuple([z.iso.datetime(), z.string(), z.string(), z.string()]);

/** Creates `GET /api/mission-control/fleet/*` (spec 4.15), from the stored rows of the caller. */
export function fleetEndpoints({ backend, secrets }: Pick<WebDependencies, 'backend' | 'secrets'>) {
  return [
    fleet({
      method: 'GET',
      path: `${PATH}/graph`,
      operationId: 'getFleetGraph',
      summary: 'List your agents and swarms, and their relations',
      responses: { 200: graph },
      async handler({ caller, tenant }) {
        const { edges, nodes, truncated } = await fleetGraph(tenant, caller.user.id);
        const generatedAt = new Date().toISOString();
        return reply(200, { nodes: [...nodes], edges: [...edges], truncated, generatedAt });
      },
    }),
    fleet({
      method: 'GET',
      path: `${PATH}/traces`,
      operationId: 'getFleetTraces',
      summary: 'List the work of your agents, newest first, or get one with its steps',
      query: z.object({ id: z.string().max(64).optional().describe('The trace'), ...page }),
      responses: {
        200: z.union([
          z.strictObject({ traces: z.array(trace), count: z.int() }),
          z.strictObject({ trace }),
        ]),
      },
      errors: errorsOf(readTrace),
      async handler(request) {
        const { caller, query, signal, tenant } = request;
        const { id, ...paged } = query;
        if (id !== undefined) {
          const found = presentTrace(await getTrace(tenant, id));
          const history = await backend.call(request, readTrace, { params: { id }, signal });
          const { run, ...steps } = history;
          return reply(200, { trace: { ...found, ...steps, ...(caller.user.isAdmin && { run }) } });
        }
        const { cursor: after, limit } = paged;
        const { items, next } = await listTraces(tenant, caller.user.id, { limit, after });
        const answer = { traces: items.map(presentTrace), count: items.length };
        return reply(200, answer, nextPageLink(`${PATH}/traces`, paged, next));
      },
    }),
    fleet({
      method: 'GET',
      path: `${PATH}/costs`,
      operationId: 'getFleetCosts',
      summary: 'Get the cost of the AI calls of your agents, by agent and day',
      query: z.object({
        period: z
          .enum(COST_PERIODS)
          .default('7d')
          .describe('The last 7 or 30 days including today, or this month up to today (UTC)'),
      }),
      responses: { 200: fleetCost },
      async handler({ query: { period }, tenant }) {
        const { agents, daily, ...rest } = await fleetCosts(tenant, period, new Date());
        return reply(200, { period, ...rest, agents: [...agents], daily: [...daily] });
      },
    }),
    fleet({
      method: 'GET',
      path: `${PATH}/bookings`,
      operationId: 'getFleetBookings',
      summary: 'List the negotiations of your agents, newest first',
      query: z.object(pageQuery(BOOKING, MAX_PAGE, DEFAULT_PAGE)),
      responses: { 200: z.strictObject({ bookings: z.array(booking), count: z.int() }) },
      async handler({ caller, query, tenant }) {
        const { cursor: after, limit } = query;
        const { items, next } = await listBookings(tenant, secrets, caller.user.id, {
          limit,
          after,
        });
        const answer = { bookings: items.map(presentBooking), count: items.length };
        return reply(200, answer, nextPageLink(`${PATH}/bookings`, query, next));
      },
    }),
  ];
}
