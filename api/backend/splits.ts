import * as z from 'zod';
import type { Requester } from '../../src/platform/audit/requester.js';
import { NotFoundError } from '../../src/lib/errors.js';
import { getSplit, listSplits } from '../../src/money/splits/royalty-splits.js';
import { bearer } from '../auth/bearer.js';
import { area } from '../http/area.js';
import { nextPageLink } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import {
  presentQueued,
  presentSplit,
  splitIdParams,
  splitItem,
  splitName,
  splitPage,
  splitParts,
  splitQueued,
} from '../views/splits.js';
import { chainAddress } from '../views/chain-address.js';
import type { BackendDependencies } from './dependencies.js';
import { SPLITS_LIMIT } from './limits.js';
import { requestedBy } from './requested-by.js';

const PATH = '/api/underground/splits';

const id = z.string().min(1).max(255);

/** Reads move nothing, so they need only the scope of the agents that pay. */
const splits = area({ tag: 'Underground', auth: bearer, keyScope: 'agents' });
const ofSplit = area({
  tag: 'Underground',
  auth: bearer,
  keyScope: 'agents',
  params: splitIdParams,
  errors: [404],
});

type SplitRequest = Parameters<typeof requestedBy>[0];

/** Creates the endpoints for splitting an agent's money (spec 4.10). */
export function splitEndpoints({ database, splits: royaltySplits }: BackendDependencies) {
  return [
    splits({
      method: 'POST',
      path: PATH,
      operationId: 'createSplit',
      summary: "Pay several recipients from an agent's wallet, by shares",
      keyScope: 'money',
      idempotent: true,
      limitOfCaller: SPLITS_LIMIT,
      body: z.object({
        userId: id,
        agentId: id,
        fromAddress: chainAddress.describe("The agent's wallet, whose key the platform holds"),
        name: splitName,
        ...splitParts,
      }),
      responses: { 200: splitQueued },
      errors: [404, 429, 503],
      async handler(request) {
        const by = requestedFor(request, request.body.userId);
        const split = await royaltySplits.create(by, request.body);
        return reply(200, presentQueued(split));
      },
    }),
    splits({
      method: 'GET',
      path: PATH,
      operationId: 'listSplits',
      summary: "List a user's splits, newest first",
      query: z.object({ userId: id.describe('The user whose splits to list'), ...splitPage }),
      responses: { 200: z.strictObject({ splits: z.array(splitItem) }) },
      errors: [404],
      async handler(request) {
        const { query } = request;
        const { limit, userId } = query;
        const { tenant } = requestedFor(request, userId);
        const before = query.cursor?.[0];
        const { items, next } = await listSplits(tenant, { userId, limit, before });
        return reply(200, { splits: items.map(presentSplit) }, nextPageLink(PATH, query, next));
      },
    }),
    ofSplit({
      method: 'GET',
      path: `${PATH}/:id`,
      operationId: 'getSplit',
      summary: 'Get a split with the state of each payout',
      responses: { 200: splitItem },
      async handler({ params, tenant }) {
        return reply(200, presentSplit(await getSplit(tenant, params.id)));
      },
    }),
    ofSplit({
      method: 'POST',
      path: `${PATH}/:id/retry`,
      operationId: 'retrySplit',
      summary: 'Resume a split: retry its unpaid payouts',
      keyScope: 'money',
      idempotent: true,
      limitOfCaller: SPLITS_LIMIT,
      responses: { 202: splitQueued },
      errors: [409, 429, 503],
      async handler(request) {
        const split = await royaltySplits.retry(requestedBy(request), request.params.id);
        return reply(202, presentQueued(split));
      },
    }),
  ];

  /** Returns the requester of a user's split. @throws NotFoundError if the caller speaks for another user. */
  function requestedFor(request: SplitRequest, userId: string): Requester {
    const { tenant } = request;
    if (tenant.userId !== undefined && tenant.userId !== userId) {
      throw new NotFoundError('User not found');
    }
    return { ...requestedBy(request), tenant: database.asUser(userId) };
  }
}
