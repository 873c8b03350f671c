import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { UsageRecord } from '../../src/ai/usage/usage-record.js';

/** A year until today. */
const DAYS = 365;

const USERS = 5;
/** Agents of each user, beside calls without an agent. */
const AGENTS = 4;
const MODELS = 6;

export const userOf = (n: number): string => `user-${n % USERS}`;
export const agentOf = (user: string, n: number): string => `${user}-agent-${n % AGENTS}`;

// Random values for each row; every fifth call has no agent.
const ROWS = `
  INSERT INTO usage_logs (call_id, user_id, agent_id, provider, model, input_tokens,
                          output_tokens, cost_usd, endpoint, created_at)
  SELECT gen_random_uuid(), user_id,
         CASE WHEN agent < ${AGENTS} THEN user_id || '-agent-' || agent END,
         'openrouter', 'openrouter/model-' || model, input, output,
         (input * 0.000003 + output * 0.000015)::decimal(10,6), '/api/ai/chat', at
    FROM (SELECT 'user-' || floor(random() * ${USERS})::int AS user_id,
                 floor(random() * ${AGENTS + 1})::int AS agent,
                 floor(random() * ${MODELS})::int AS model,
                 floor(random() * 4000)::int AS input, floor(random() * 1000)::int AS output,
                 ($1::date - $2::int)::timestamp AT TIME ZONE 'UTC'
                   + random() * interval '86399 seconds' AS at
            FROM generate_series(1, $3)) AS drawn`;

/** Indexes that are recreated after the fill: updates row by row take many times as long. */
const INDEXES = [
  'CREATE UNIQUE INDEX usage_logs_call_id_key ON usage_logs (call_id)',
  'CREATE INDEX usage_logs_user_time ON usage_logs (user_id, created_at)',
];

/** Inserts this many calls, spread over a year until today (UTC). */
export async function fillUsage(client: pg.Client, rows: number): Promise<void> {
  const today = new Date().toISOString().slice(0, 10);
  await client.query('DROP INDEX usage_logs_call_id_key, usage_logs_user_time');
  for (let day = 0; day < DAYS; day++) {
    const count = Math.floor(((day + 1) * rows) / DAYS) - Math.floor((day * rows) / DAYS);
    await client.query(ROWS, [today, day, count]);
  }
  for (const index of INDEXES) await client.query(index);
  await client.query('VACUUM ANALYZE usage_logs');
}

/** Returns the next calls to be settled, with the current time. */
export function newCalls(count: number): UsageRecord[] {
  const at = new Date().toISOString();
  return Array.from({ length: count }, (_, n) => {
    const userId = userOf(n);
    return {
      callId: randomUUID(),
      userId,
      agentId: n % (AGENTS + 1) < AGENTS ? agentOf(userId, n % (AGENTS + 1)) : null,
      provider: 'openrouter',
      model: `openrouter/model-${Math.floor(Math.random() * MODELS)}`,
      inputTokens: 1_000,
      outputTokens: 500,
      costUsd: '0.010500',
      endpoint: '/api/ai/chat',
      at,
    };
  });
}
