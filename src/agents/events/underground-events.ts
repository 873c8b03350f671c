import { ConflictError } from '../../lib/errors.js';
import { recordAudit } from '../../platform/audit/audit.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database, Statements, TenantDatabase } from '../../platform/database/database.js';
import type { UndergroundEventRow } from '../../platform/database/models.js';
import { selectFrom } from '../../platform/database/schema/table.js';
import { UndergroundEvent } from '../../platform/database/tables/underground-events.js';
import { getAgent, type Page } from '../agents/agents.js';

/** Maximum number of events of one agent; retention removes past ones. */
export const MAX_EVENTS = 1_000;

export interface NewEvent {
  readonly agentId: string;
  readonly name: string;
  readonly description: string;
  readonly venue: string;
  readonly eventDate: Date;
  /** Base units. */
  readonly ticketPriceUsdc: bigint;
  readonly totalTickets: number;
}

/**
 * Stores an event of an agent that the requester may access. @param also runs in the same transaction.
 * @throws NotFoundError without such an agent; ConflictError beyond `MAX_EVENTS`; the errors of `also`.
 */
export async function createEvent(
  database: Database,
  by: Requester,
  wanted: NewEvent,
  also: (db: Statements, event: UndergroundEventRow) => Promise<void>,
): Promise<UndergroundEventRow> {
  const { id: agentId, userId } = await getAgent(by.tenant, wanted.agentId);
  return database.asPlatform().transaction(async (db) => {
    // Until the commit, so that no two events exceed the limit together.
    await db.lock(`underground-events:${agentId}`);
    if ((await db.UndergroundEvent.count({ where: { agentId } })) >= MAX_EVENTS) {
      throw new ConflictError(
        `The agent has ${MAX_EVENTS} events: retention removes past ones`,
        'EVENT_LIMIT_REACHED',
        { limit: MAX_EVENTS },
      );
    }
    const event = await db.UndergroundEvent.create({
      ...wanted,
      userId,
      ticketPriceUsdc: String(wanted.ticketPriceUsdc),
    });
    await recordAudit(db, {
      actor: by.actor,
      userId,
      action: 'event.create',
      subject: event.id,
      requestId: by.requestId,
      detail: { agentId },
    });
    await also(db, event);
    return event;
  });
}

/** Lists the tenant's events, newest event date first, after a previous page's `next`. */
export async function listEvents(
  tenant: TenantDatabase,
  {
    after,
    limit,
  }: { readonly limit: number; readonly after?: readonly [string, string] | undefined },
): Promise<Page<UndergroundEventRow>> {
  const { userId } = tenant;
  const rows = await tenant.query<UndergroundEventRow>(
    `${selectFrom(UndergroundEvent)} WHERE true
       ${userId === undefined ? '' : 'AND user_id = $userId'}
       ${after === undefined ? '' : 'AND (event_date, id) < ($date::timestamptz, $id::bigint)'}
     ORDER BY event_date DESC, id DESC LIMIT $most`,
    // One row more than requested shows whether a next page exists.
    { userId, ...(after && { date: after[0], id: after[1] }), most: limit + 1 },
  );
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last && [last.eventDate.toISOString(), last.id] };
}
