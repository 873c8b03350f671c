import { z } from 'zod';
import { OPERATION_KINDS, OPERATION_STATUSES } from '../../src/agents/operation-kinds.js';
import { IMAGE_TAG } from '../../src/containers/image-name.js';
import type { AgentArchiveRow, OperationRow } from '../../src/database/models.js';
import { wholeNumber } from '../http/pagination.js';
import { watchdogTransition } from './watchdog.js';

/** Longest time that `?wait=` holds an answer (decision 2). */
const MAX_WAIT_SECONDS = 60;

export const waitQuery = z.object({
  wait: wholeNumber('wait', { least: 0, most: MAX_WAIT_SECONDS, usual: 0 }).describe(
    'Seconds to hold the answer until the operation ends',
  ),
});

/** What a lifecycle call answers, on both listeners. */
export const operationAnswer = z.strictObject({
  id: z.string(),
  operation: z.string(),
  operationId: z.string(),
  status: z.enum(OPERATION_STATUSES),
  error: z.string().nullable(),
});

/** What was done to an agent, and what the watchdog did, on both listeners. */
export const operationList = z.strictObject({
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
  transitions: z.array(watchdogTransition).describe("The watchdog's changes, newest first"),
});

export function presentOperation(operation: OperationRow) {
  return {
    id: operation.id,
    operation: operation.kind,
    status: operation.status,
    error: operation.error,
    requestedAt: operation.requestedAt.toISOString(),
    finishedAt: operation.finishedAt?.toISOString() ?? null,
  };
}

/** What an update is to, on both listeners. */
export const updateBody = z.object({
  version: z
    .string()
    .regex(IMAGE_TAG, 'version must be the tag of an image')
    .optional()
    .describe("A tag of the agent's image; without one, what new agents run"),
});

/** What is to be restored, on both listeners. */
export const restoreBody = z.object({ archiveId: z.string().max(64) });

/** An agent's archived memories, on both listeners. */
export const archiveList = z.strictObject({
  archives: z.array(
    z.strictObject({
      id: z.string(),
      reason: z.enum(['reset-memory', 'restore']).describe('What put it away'),
      createdAt: z.iso.datetime(),
    }),
  ),
});

export function presentArchive({ id, reason, createdAt }: AgentArchiveRow) {
  return { id, reason, createdAt: createdAt.toISOString() };
}
