import type { Page } from '../agents/agents/agents.js';
import { threadContext } from '../bus/sealed-contexts.js';
import { isObject, tryParseJson } from '../lib/json.js';
import type { TenantDatabase } from '../platform/database/database.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import type { ThreadState } from '../types/bus.js';

export const BOOKING_STATUSES = [
  'requested',
  'countered',
  'accepted',
  'declined',
  'cancelled',
  'settled',
] as const satisfies readonly (ThreadState | 'settled')[];

/** A negotiation of two agents, as shown to the owner of one of them. */
export interface Booking {
  /** The id that the agents gave the booking. */
  readonly id: string;
  readonly agentId: string;
  /** The other agent. */
  readonly counterparty: string;
  readonly status: (typeof BOOKING_STATUSES)[number];
  /** Terms as the agents wrote them; null for those that no message had. */
  readonly amount: string | null;
  readonly currency: string | null;
  readonly eventId: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Position in a list: time, both agents, booking. */
export type BookingPosition = readonly [string, string, string, string];

interface ThreadRow {
  readonly agentA: string;
  readonly userA: string;
  readonly agentB: string;
  readonly bookingId: string;
  readonly state: ThreadState;
  readonly sealedTerms: string;
  readonly isSettled: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly position: string;
}

/** Lists a user's negotiations, newest first, after a previous page's `next`. */
export async function listBookings(
  tenant: TenantDatabase,
  secrets: SecretBox,
  userId: string,
  { after, limit }: { readonly limit: number; readonly after?: BookingPosition | undefined },
): Promise<Page<Booking>> {
  const [at, a, b, booking] = after ?? [];
  const most = limit + 1; // one row more than requested shows whether a next page exists
  const rows = await tenant.query<ThreadRow>(pageSql(after !== undefined), {
    ...{ userId, most },
    ...(after && { at, a, b, booking }),
  });
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  return {
    items: page.map((row) => bookingOf(row, secrets, userId)),
    next: last && [last.position, last.agentA, last.agentB, last.bookingId],
  };
}

/** Returns the SQL of a page: each part has its own index, and a thread of the user's agents is in the first. */
function pageSql(isAfter: boolean): string {
  const before = isAfter
    ? 'AND (created_at, agent_a, agent_b, booking_id) < ($at::timestamptz, $a, $b, $booking)'
    : '';
  const newest = (party: string) => `
    (SELECT * FROM bus_threads WHERE ${party} ${before}
      ORDER BY created_at DESC, agent_a DESC, agent_b DESC, booking_id DESC LIMIT $most)`;
  return `
    SELECT agent_a AS "agentA", user_a AS "userA", agent_b AS "agentB", booking_id AS "bookingId", state,
           sealed_terms AS "sealedTerms", booking_is_settled(agent_a, agent_b, booking_id) AS "isSettled",
           created_at AS "createdAt", updated_at AS "updatedAt",
           to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS position
      FROM (SELECT * FROM (${newest('user_a = $userId')} UNION ALL
                           ${newest('user_b = $userId AND user_a <> $userId')}) both_parts
             ORDER BY created_at DESC, agent_a DESC, agent_b DESC, booking_id DESC LIMIT $most) newest
     ORDER BY created_at DESC, agent_a DESC, agent_b DESC, booking_id DESC`;
}

function bookingOf(
  {
    agentA,
    agentB,
    bookingId,
    createdAt,
    isSettled,
    sealedTerms,
    state,
    updatedAt,
    userA,
  }: ThreadRow,
  secrets: SecretBox,
  userId: string,
): Booking {
  const stored = tryParseJson(secrets.open(sealedTerms, threadContext(agentA, agentB, bookingId)));
  const terms = isObject(stored) ? stored : {};
  const [agentId, counterparty] = userA === userId ? [agentA, agentB] : [agentB, agentA];
  return {
    id: bookingId,
    agentId,
    counterparty,
    status: isSettled ? 'settled' : state,
    amount: termOf(terms.amount),
    currency: termOf(terms.currency),
    eventId: termOf(terms.eventId),
    createdAt,
    updatedAt,
  };
}

/** Returns a term as text: agents send texts or numbers. */
const termOf = (value: unknown): string | null =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : null;
