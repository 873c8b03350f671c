import { queryRows } from '../../platform/database/catalog.js';
import { randomUUID } from 'node:crypto';
import type { Database } from '../../../src/platform/database/database.js';
import type { UsageRecord } from '../../../src/ai/usage/usage-record.js';

/** Returns the usage record of a call, by default of user `ada` with 5 tokens. */
export function usageOf(given: Partial<UsageRecord> = {}): UsageRecord {
  return {
    callId: randomUUID(),
    userId: 'ada',
    agentId: null,
    provider: 'openai',
    model: 'openai/gpt-6-luna',
    inputTokens: 3,
    outputTokens: 2,
    costUsd: '0.000123',
    endpoint: '/v1/chat/completions',
    at: new Date().toISOString(),
    ...given,
  };
}

/** Queries as the platform, which has access to all rows. */
export const rowsOf = <Row extends object>(db: Database, sql: string): Promise<Row[]> =>
  db.asPlatform().query<Row>(sql);

/** Executes a statement that the serving role is not allowed to. */
export async function asOwner(ownerUrl: string, sql: string): Promise<void> {
  await queryRows(ownerUrl, sql);
}

export interface Balance {
  readonly used: number;
  readonly held: number;
}

/** Returns a user's quota for a month (`YYYY-MM-01`), by default the current month. */
export async function balanceOf(db: Database, userId: string, month?: string): Promise<Balance> {
  const [row] = await db.asPlatform().query<Balance>(
    `SELECT used::float8 AS used, held::float8 AS held FROM token_quotas
      WHERE user_id = $userId AND month = coalesce($month, ${THIS_MONTH})`,
    { userId, month: month ?? null },
  );
  return row ?? { used: 0, held: 0 };
}

/** SQL expression for the first day of the current month in UTC. */
export const THIS_MONTH = `date_trunc('month', now() AT TIME ZONE 'UTC')::date`;

/**
 * Quotas whose totals are wrong: `used` must equal the tokens of the user's calls in that month, and
 * `held` those reserved for calls in flight.
 */
export const unbalanced = (db: Database): Promise<object[]> =>
  rowsOf(
    db,
    `WITH logged AS (
       SELECT user_id, date_trunc('month', created_at AT TIME ZONE 'UTC')::date AS month,
              sum(input_tokens::bigint + output_tokens) AS tokens
         FROM usage_logs GROUP BY 1, 2
     ), reserved AS (
       SELECT user_id, month, sum(tokens) AS tokens FROM quota_reservations GROUP BY 1, 2
     )
     SELECT * FROM token_quotas q
       FULL JOIN logged l USING (user_id, month) FULL JOIN reserved r USING (user_id, month)
      WHERE (coalesce(q.used, 0), coalesce(q.held, 0))
            <> (coalesce(l.tokens, 0), coalesce(r.tokens, 0))`,
  );
