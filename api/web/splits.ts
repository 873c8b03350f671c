import * as z from 'zod';
import { getAgent } from '../../src/agents/agents/agents.js';
import { NotFoundError } from '../../src/lib/errors.js';
import { listSplits, type QueuedSplit } from '../../src/money/splits/royalty-splits.js';
import { storedWalletOf } from '../../src/money/wallets/agent-wallets.js';
import { person } from '../auth/person.js';
import { area } from '../http/area.js';
import { nextPageLink } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import {
  presentQueued,
  presentSplit,
  splitItem,
  splitName,
  splitPage,
  splitParts,
  splitQueued,
} from '../views/splits.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { requestedByPerson, type PersonRequest } from './person-request.js';

const INSTANT = '/api/skills/instant-split';
const SETTLEMENT = '/api/skills/booking-settlement';

/** Reads move nothing, so they need only the scope of the agents that pay. */
const skills = area({ tag: 'Skills', auth: person, keyScope: 'agents' });

const bookingId = z.string().trim().min(1).max(255);

const wanted = {
  agentId: z.string().max(64).describe('The agent whose wallet pays'),
  name: splitName.optional(),
  ...splitParts,
};

const settlementItem = splitItem.extend({ bookingId: z.string() });

type Wanted = z.output<z.ZodObject<typeof wanted>> & { readonly bookingId?: string };

/** Creates the endpoints for splits from users' agent wallets, and for settling bookings (spec 4.15). */
export function splitEndpoints({ splits }: WebDependencies) {
  return [
    skills({
      method: 'POST',
      path: INSTANT,
      operationId: 'payInstantSplit',
      summary: "Pay several recipients from your agent's wallet, by shares",
      keyScope: 'money',
      idempotent: true,
      limitOfCaller: LIMITS.splitsOfUser,
      body: z.object(wanted),
      responses: { 200: splitQueued },
      errors: [404, 503],
      handler: async (request) => reply(200, presentQueued(await pay(request, request.body))),
    }),
    skills({
      method: 'GET',
      path: INSTANT,
      operationId: 'listInstantSplits',
      summary: 'List your splits without a booking, newest first',
      query: z.object(splitPage),
      responses: { 200: z.strictObject({ splits: z.array(splitItem) }) },
      async handler(request) {
        const { items, next } = await pageOf(request, { settling: false });
        const found = items.map(presentSplit);
        return reply(200, { splits: found }, nextPageLink(INSTANT, request.query, next));
      },
    }),
    skills({
      method: 'POST',
      path: SETTLEMENT,
      operationId: 'settleBooking',
      summary: 'Settle a booking by a split; idempotent: a repetition returns the first settlement',
      keyScope: 'money',
      idempotent: true,
      limitOfCaller: LIMITS.splitsOfUser,
      body: z.object({ ...wanted, bookingId }),
      responses: { 200: splitQueued },
      errors: [404, 503],
      handler: async (request) => reply(200, presentQueued(await pay(request, request.body))),
    }),
    skills({
      method: 'GET',
      path: SETTLEMENT,
      operationId: 'listSettlements',
      summary: 'List your settlements of bookings, newest first',
      query: z.object(splitPage),
      responses: { 200: z.strictObject({ settlements: z.array(settlementItem) }) },
      async handler(request) {
        const { items, next } = await pageOf(request, { settling: true });
        const settlements = items.map((each) => ({
          ...presentSplit(each),
          bookingId: each.split.bookingId ?? '',
        }));
        return reply(200, { settlements }, nextPageLink(SETTLEMENT, request.query, next));
      },
    }),
  ];

  /** Requests a split. @throws NotFoundError for another user's agent, or without a platform-held wallet */
  async function pay(request: PersonRequest, body: Wanted): Promise<QueuedSplit> {
    const { caller, tenant } = request;
    const { agentId, name, ...parts } = body;
    const userId = caller.user.id;
    const agent = await getAgent(tenant, agentId);
    const fromAddress = await storedWalletOf(tenant, { agentId, userId });
    if (fromAddress === undefined) throw new NotFoundError('Wallet not found');
    return splits.create(requestedByPerson(request), {
      ...parts,
      userId,
      agentId,
      fromAddress,
      name: name ?? agent.name,
    });
  }
}

interface PageRequest extends Pick<PersonRequest, 'caller' | 'tenant'> {
  readonly query: { readonly limit: number; readonly cursor?: readonly [string] };
}

/** Returns a page of the caller's splits, newest first, with or without a booking. */
function pageOf({ caller, query, tenant }: PageRequest, { settling }: { settling: boolean }) {
  const { limit, cursor } = query;
  return listSplits(tenant, { userId: caller.user.id, settling, limit, before: cursor?.[0] });
}
