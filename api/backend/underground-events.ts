import * as z from 'zod';
import { createEvent, listEvents } from '../../src/agents/events/underground-events.js';
import { fieldMessage } from '../../src/lib/field-name.js';
import type { UndergroundEventRow } from '../../src/platform/database/models.js';
import { StillRunningError } from '../../src/platform/idempotency/idempotency-store.js';
import { amountText, formatAmount, formattedAmount } from '../../src/types/money.js';
import { bearer } from '../auth/bearer.js';
import { area } from '../http/area.js';
import { DEFAULT_PAGE, MAX_PAGE, nextPageLink, pageQuery } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

const PATH = '/api/underground/events';

const MAX_TICKETS = 1_000_000;

const events = area({ tag: 'Underground', auth: bearer, keyScope: 'agents' });

const shortText = (most: number) => z.string().trim().min(1).max(most);

/** Accepts a date, or a date and a time; without an offset it is UTC. */
const eventDate = z
  .union([z.iso.date(), z.iso.datetime({ offset: true, local: true })])
  .transform((value, context) => {
    const isLocal = value.includes('T') && !/(?:Z|[+-]\d\d:?\d\d)$/.test(value);
    const date = new Date(isLocal ? `${value}Z` : value);
    if (!Number.isNaN(date.getTime()) && date.getUTCFullYear() >= 1) return date;
    context.addIssue({ code: 'custom', ...fieldMessage('must be an ISO 8601 time') });
    return z.NEVER;
  })
  .describe('ISO 8601, in UTC without an offset');

const eventItem = z
  .strictObject({
    id: z.int(),
    agent_id: z.string(),
    name: z.string(),
    description: z.string(),
    venue: z.string(),
    event_date: z.iso.datetime(),
    ticket_price_usdc: formattedAmount,
    total_tickets: z.int(),
  })
  .meta({ id: 'UndergroundEvent' });

const present = (event: UndergroundEventRow): z.input<typeof eventItem> => ({
  id: Number(event.id),
  agent_id: event.agentId,
  name: event.name,
  description: event.description,
  venue: event.venue,
  event_date: event.eventDate.toISOString(),
  ticket_price_usdc: formatAmount(BigInt(event.ticketPriceUsdc)),
  total_tickets: event.totalTickets,
});

/** Creates `GET|POST /api/underground/events` (spec 4.10). */
export function undergroundEventEndpoints({ database }: Pick<BackendDependencies, 'database'>) {
  return [
    events({
      method: 'GET',
      path: PATH,
      operationId: 'listEvents',
      summary: 'List events, newest event date first',
      query: z.object(
        pageQuery(
          z.tuple([z.iso.datetime(), z.string().regex(/^\d{1,15}$/)]),
          MAX_PAGE,
          DEFAULT_PAGE,
        ),
      ),
      responses: { 200: z.array(eventItem) },
      async handler({ query, tenant }) {
        const { cursor: after, limit } = query;
        const { items, next } = await listEvents(tenant, { after, limit });
        return reply(200, items.map(present), nextPageLink(PATH, query, next));
      },
    }),
    events({
      method: 'POST',
      path: PATH,
      operationId: 'createEvent',
      summary: 'Announce an event of an agent',
      idempotent: true,
      body: z.object({
        agentId: z.string().min(1).max(256).describe('The agent that hosts the event'),
        name: shortText(200),
        description: shortText(5_000),
        venue: shortText(500),
        eventDate,
        ticketPriceUsdc: amountText.describe('USDC'),
        totalTickets: z.int().min(1).max(MAX_TICKETS),
      }),
      responses: { 201: eventItem },
      errors: [404],
      async handler(request) {
        const { body, keepAnswer } = request;
        const event = await createEvent(database, requestedBy(request), body, async (db, made) => {
          const isKept =
            keepAnswer === undefined || (await keepAnswer(db, reply(201, present(made))));
          if (!isKept) throw new StillRunningError();
        });
        return reply(201, present(event));
      },
    }),
  ];
}
