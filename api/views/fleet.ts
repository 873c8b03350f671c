import * as z from 'zod';
import { BOOKING_STATUSES, type Booking } from '../../src/fleet/bookings.js';
import { EDGE_TYPES, NODE_TYPES } from '../../src/fleet/fleet-graph.js';
import { TRACE_KINDS, TRACE_STATUSES } from '../../src/fleet/trace-sources.js';
import type { Span, Trace, TraceHistory } from '../../src/fleet/traces.js';

export const graph = z
  .strictObject({
    nodes: z.array(
      z.strictObject({
        id: z.string(),
        type: z.enum(NODE_TYPES),
        label: z.string(),
        status: z.string(),
      }),
    ),
    edges: z.array(
      z.strictObject({
        from: z.string(),
        to: z.string(),
        type: z.enum(EDGE_TYPES),
        count: z.int(),
      }),
    ),
    truncated: z.boolean(),
    generatedAt: z.iso.datetime(),
  })
  .meta({ id: 'FleetGraph' });

const times = {
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().nullable(),
  durationMs: z.int().nullable(),
  status: z.enum(TRACE_STATUSES),
  error: z.string().nullable(),
};

const steps = {
  spans: z.array(
    z.strictObject({
      id: z.string(),
      parentId: z.string().nullable(),
      name: z.string(),
      ...times,
      attempts: z.int(),
    }),
  ),
  retained: z.boolean().describe('False if the history is older than its retention'),
  truncated: z.boolean(),
};

const run = z.strictObject({
  workflowId: z.string(),
  runId: z.string().nullable(),
  url: z.string().nullable(),
});

export const traceHistory = z.strictObject({ ...steps, run });

/** A trace; its steps are only in the answer about one trace. */
export const trace = z
  .strictObject({
    id: z.string(),
    kind: z.enum(TRACE_KINDS),
    name: z.string(),
    agentId: z.string().nullable(),
    ...times,
    ...z.object(steps).partial().shape,
    run: run.optional().describe('For administrators'),
  })
  .meta({ id: 'Trace' });

export const fleetCost = z
  .strictObject({
    period: z.string(),
    from: z.iso.date(),
    to: z.iso.date(),
    totalCost: z.number().describe('US dollars'),
    agents: z.array(
      z.strictObject({
        agentId: z.string().nullable(),
        name: z.string(),
        cost: z.number(),
        tokens: z.int(),
        calls: z.int(),
        share: z.number().describe('0 to 1'),
      }),
    ),
    daily: z.array(z.strictObject({ date: z.iso.date(), cost: z.number() })),
    projectedMonthCost: z.number(),
  })
  .meta({ id: 'FleetCosts' });

export const booking = z
  .strictObject({
    id: z.string(),
    agentId: z.string(),
    counterparty: z.string().describe('The other agent'),
    status: z.enum(BOOKING_STATUSES),
    amount: z.string().nullable(),
    currency: z.string().nullable(),
    eventId: z.string().nullable(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Booking' });

export const presentTrace = ({ agentId, id, kind, name, ...rest }: Trace) => ({
  ...{ id, kind, name, agentId },
  ...presentTimes(rest),
});

export const presentHistory = ({
  run,
  spans,
  ...rest
}: TraceHistory): z.infer<typeof traceHistory> => ({
  ...rest,
  spans: spans.map(({ attempts, id, name, parentId, ...rest }) => ({
    ...{ id, parentId, name, attempts },
    ...presentTimes(rest),
  })),
  run: { ...run },
});

function presentTimes({
  error,
  finishedAt,
  startedAt,
  status,
}: Pick<Span, 'error' | 'finishedAt' | 'startedAt' | 'status'>) {
  return {
    startedAt: startedAt.toISOString(),
    finishedAt: finishedAt?.toISOString() ?? null,
    // Two clocks may have written the times.
    durationMs: finishedAt && Math.max(0, finishedAt.getTime() - startedAt.getTime()),
    status,
    error,
  };
}

export const presentBooking = ({ createdAt, updatedAt, ...rest }: Booking) => ({
  ...rest,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});
