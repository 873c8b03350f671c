import * as z from 'zod';

const ms = z.number().nullable().describe('Milliseconds; null without a measurement');

export const availability = z
  .number()
  .nullable()
  .describe('Percent of the desired running time; null if that time is zero');

export const agentCounts = z
  .strictObject({
    total: z.int(),
    running: z.int(),
    stopped: z.int(),
    provisioning: z.int(),
    error: z.int(),
  })
  .meta({ id: 'AgentCounts' });

export const usageFigures = z
  .strictObject({
    calls: z.int(),
    tokens: z.int(),
    costUsd: z.number(),
  })
  .meta({ id: 'UsageFigures' });

export const turnCounts = { turns: z.int(), failed: z.int() };
export const incidentCounts = z
  .strictObject({ crashes: z.int(), repairs: z.int() })
  .meta({ id: 'Incidents' });

export const latencies = { p50Ms: ms, p95Ms: ms };
export const p99 = { p99Ms: ms };
export const p95 = { p95Ms: ms };
