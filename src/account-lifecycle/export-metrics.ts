import type { TenantDatabase } from '../platform/database/database.js';

/** Rows held in memory at a time. */
const PAGE = 1_000;

/** Before every time and agent. */
const BEGINNING = { at: '-infinity', agentId: '' };

type Place = typeof BEGINNING;

/** `place` is the text of the row's time, as exact as stored. */
type Placed = object & { readonly agentId: string; readonly place: string };

const USAGE = `
  SELECT hour::text AS place, hour, agent_id AS "agentId", calls::float8 AS calls,
         tokens::float8 AS tokens, cost_usd::float8 AS "costUsd", tool_calls::float8 AS "toolCalls",
         tool_completed::float8 AS "toolCompleted", tool_successes::float8 AS "toolSuccesses",
         tool_ms::float8 AS "toolMs"
    FROM usage_hourly
   WHERE user_id = $userId AND (hour, agent_id) > ($at::timestamptz, $agentId)
   ORDER BY hour, agent_id LIMIT ${PAGE}`;

const measured = (table: string, columns: string) => `
  SELECT at::text AS place, at, agent_id AS "agentId", ${columns},
         cpu_percent AS "cpuPercent", memory_bytes::float8 AS "memoryBytes",
         network_in::float8 AS "networkIn", network_out::float8 AS "networkOut"
    FROM ${table}
   WHERE agent_id = $agentId AND at > $at::timestamptz`;

const SAMPLES = `
  ${measured('agent_samples', 'memory_limit_bytes::float8 AS "memoryLimitBytes"')}
   ORDER BY at LIMIT ${PAGE}`;

/** Sums by hour; those of other steps follow from them and from the samples. */
const SUMS = `
  ${measured('agent_sample_sums', 'samples')} AND step = 3600
   ORDER BY at LIMIT ${PAGE}`;

/** Yields a user's usage by hour. */
export const usageByHour = (tenant: TenantDatabase, userId: string) =>
  pages(tenant, USAGE, BEGINNING, userId);

/** Yields the measurements of agents, and their sums by hour. */
export const samples = (tenant: TenantDatabase, agents: AgentPages) =>
  ofAgents(tenant, agents, SAMPLES);
export const sampleSums = (tenant: TenantDatabase, agents: AgentPages) =>
  ofAgents(tenant, agents, SUMS);

type AgentPages = AsyncIterable<readonly { readonly id: string }[]>;

async function* ofAgents(
  tenant: TenantDatabase,
  agents: AgentPages,
  sql: string,
): AsyncGenerator<object[]> {
  for await (const page of agents) {
    for (const { id: agentId } of page) yield* pages(tenant, sql, { ...BEGINNING, agentId });
  }
}

async function* pages(
  tenant: TenantDatabase,
  sql: string,
  from: Place,
  userId?: string,
): AsyncGenerator<object[]> {
  for (let after = from; ;) {
    const rows = await tenant.query<Placed>(sql, {
      ...after,
      ...(userId !== undefined && { userId }),
    });
    yield rows.map(({ place, ...row }) => row);
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return;
    after = { at: last.place, agentId: last.agentId };
  }
}
