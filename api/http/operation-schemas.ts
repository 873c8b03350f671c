import { z } from 'zod';
import { OPERATION_KINDS, OPERATION_STATUSES } from '../../src/agents/operation-rules.js';
import type { OperationRow } from '../../src/database/models.js';

/** Longest time that `?wait=` holds an answer (decision 2). */
const MAX_WAIT_SECONDS = 60;

export const waitQuery = z.object({
  wait: z.coerce
    .number()
    .min(0)
    .max(MAX_WAIT_SECONDS)
    .default(0)
    .describe('Seconds to hold the answer until the operation ends'),
});

/** What a lifecycle call answers, on both listeners. */
export const operationAnswer = z.strictObject({
  id: z.string(),
  operation: z.string(),
  operationId: z.string(),
  status: z.enum(OPERATION_STATUSES),
  error: z.string().nullable(),
});

/** The history of an agent's operations, on both listeners. */
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
