import * as z from 'zod';
import { readHistory } from '../../src/agents/agents/history.js';
import { OPERATION_KINDS, OPERATION_STATUSES } from '../../src/types/operation-kinds.js';
import { IMAGE_TAG } from '../../src/docker/containers/image-name.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import type { AgentArchiveRow, OperationRow } from '../../src/platform/database/models.js';
import { isObject } from '../../src/lib/json.js';
import { nextPageLink, page, wholeNumber } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import type { ConcurrencyLimit } from '../http/in-flight.js';
import { presentTransition, watchdogTransition } from './watchdog.js';

/** Maximum seconds that `?wait=` holds an answer (decision 2). */
const MAX_WAIT_SECONDS = 60;

export const waitQuery = z.object({
  wait: wholeNumber('wait', { least: 0, most: MAX_WAIT_SECONDS, usual: 0 }).describe(
    'Seconds to hold the answer until the operation ends',
  ),
});

/** Limits a user's waiting requests: each holds a connection and polls the database. */
export const WAITS_AT_ONCE: ConcurrencyLimit = {
  name: 'waits',
  perOwner: 50,
  // Each waiting request polls the database twice a second.
  total: 500,
  counts: (query) => isObject(query) && Number(query.wait) > 0,
};

export const operationAnswer = z
  .strictObject({
    id: z.string(),
    operation: z.string(),
    operationId: z.string(),
    status: z.enum(OPERATION_STATUSES),
    error: z.string().nullable(),
  })
  .meta({ id: 'Operation' });

export const historyQuery = z.object(page);

export const operationList = z
  .strictObject({
    operations: z.array(
      z.strictObject({
        id: z.string(),
        operation: z.enum(OPERATION_KINDS),
        status: z.enum(OPERATION_STATUSES),
        error: z.string().nullable(),
        requestedAt: z.iso.datetime(),
        finishedAt: z.iso.datetime().nullable(),
      }),
    ),
    transitions: z
      .array(watchdogTransition)
      .describe('State changes of the watchdog, newest first'),
  })
  .meta({ id: 'OperationHistory' });

/** Returns a page of an agent's history, with the link to the next page. */
export async function answerHistory(
  tenant: TenantDatabase,
  agentId: string,
  query: z.output<typeof historyQuery>,
) {
  const { next, operations, transitions } = await readHistory(tenant, agentId, {
    limit: query.limit,
    before: query.cursor,
  });
  return reply(
    200,
    {
      operations: operations.map(presentOperation),
      transitions: transitions.map(presentTransition),
    },
    nextPageLink(`/api/agents/${encodeURIComponent(agentId)}/operations`, query, next),
  );
}

function presentOperation(operation: OperationRow) {
  return {
    id: operation.id,
    operation: operation.kind,
    status: operation.status,
    error: operation.error,
    requestedAt: operation.requestedAt.toISOString(),
    finishedAt: operation.finishedAt?.toISOString() ?? null,
  };
}

export const updateBody = z.strictObject({
  version: z
    .string()
    .regex(IMAGE_TAG, 'version must be the tag of an image')
    .optional()
    .describe('One of the versions that the operator allows; default: the version of new agents'),
});

export const restoreBody = z.strictObject({ archiveId: z.string().max(64) });

export const archiveList = z
  .strictObject({
    archives: z.array(
      z.strictObject({
        id: z.string(),
        reason: z
          .enum(['reset-memory', 'restore'])
          .describe('The operation that archived the memory'),
        createdAt: z.iso.datetime(),
      }),
    ),
  })
  .meta({ id: 'Archives' });

export function presentArchive({ id, reason, createdAt }: AgentArchiveRow) {
  return { id, reason, createdAt: createdAt.toISOString() };
}
