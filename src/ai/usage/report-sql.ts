/**
 * A call is in `usage_pending` from its own transaction until the one that adds it to `usage_daily`, so one
 * statement over both tables counts it exactly once. Only metrics read `usage_logs`, for a day at most.
 */
export const ROLLED_UP = `
  (SELECT user_id, day, agent_id, provider, model, input_tokens, output_tokens, cost_usd, calls
     FROM usage_daily
   UNION ALL
   SELECT user_id, day, agent_id, provider, model, input_tokens, output_tokens, cost_usd, calls
     FROM usage_pending)`;

export interface Scope {
  readonly usage: string;
  /** One user (`$userId`) or all users. */
  readonly ofUser: boolean;
}

const within = ({ usage, ofUser }: Scope) =>
  `FROM ${usage} AS u WHERE day BETWEEN $from AND $to${ofUser ? ' AND user_id = $userId' : ''}`;

// Sums as numbers: exact up to 2^53; dollars with six decimals up to nine billion.
const SUMS = `sum(input_tokens)::float8 AS "inputTokens", sum(output_tokens)::float8 AS "outputTokens",
  sum(input_tokens + output_tokens)::float8 AS "totalTokens", sum(cost_usd)::float8 AS "costUsd",
  sum(calls)::float8 AS calls`;

/**
 * Returns the SQL of usage by day, last day first, then by agent, provider and model: at most `$limit` rows
 * after the row of `$afterDay`, `$afterAgent`, `$afterProvider` and `$afterModel`, if given.
 */
export const summarySql = (scope: Scope, after: boolean) => `
  SELECT day::text AS day, agent_id AS "agentId", provider, model, ${SUMS}
  ${within(scope)}${after ? AFTER : ''}
  GROUP BY u.day, agent_id, provider, model
  ORDER BY u.day DESC, agent_id, provider, model LIMIT $limit`;

const AFTER = ` AND (day < $afterDay OR (day = $afterDay
  AND (agent_id, provider, model) > ($afterAgent, $afterProvider, $afterModel)))`;

/** Returns the SQL of usage by model, highest cost first; for one agent (`$agentId`) or all. */
export const byModelSql = (scope: Scope, ofAgent: boolean) => `
  SELECT provider, model, ${SUMS}
  ${within(scope)}${ofAgent ? ' AND agent_id = $agentId' : ''}
  GROUP BY provider, model ORDER BY sum(cost_usd) DESC, provider, model LIMIT $limit`;

/** Returns the SQL of usage by day in ascending order; only days with calls. */
export const dailySql = (scope: Scope) => `
  SELECT day::text AS day, ${SUMS}
  ${within(scope)} GROUP BY u.day ORDER BY u.day`;

/** Returns the SQL of tools' calls, most calls first; for one agent (`$agentId`) or all. */
export const toolsSql = (ofUser: boolean, ofAgent: boolean) => `
  SELECT tool, sum(calls)::float8 AS calls, sum(successes)::float8 AS successes,
         round(sum(ms) / nullif(sum(completed), 0))::float8 AS "averageMs"
    FROM tool_usage_daily AS u
   WHERE day BETWEEN $from AND $to${ofUser ? ' AND user_id = $userId' : ''}
     ${ofAgent ? 'AND agent_id = $agentId' : ''}
   GROUP BY tool ORDER BY sum(calls) DESC, tool LIMIT $limit`;

/**
 * Returns the SQL of a dashboard: a row for the total, each day, each agent's use of a model, and each model.
 * Columns that do not apply are null. Costs are in millionths of a dollar.
 */
export const costSql = (scope: Scope) => `
  SELECT day::text AS day, agent_id AS "agentId", model,
         coalesce(sum(input_tokens + output_tokens), 0)::float8 AS tokens,
         coalesce(sum(cost_usd) * 1000000, 0)::float8 AS micros,
         coalesce(sum(calls), 0)::float8 AS calls
  ${within(scope)} GROUP BY GROUPING SETS ((), (u.day), (agent_id, model), (model))`;

export const usedSql = ({ usage, ofUser }: Scope) =>
  `SELECT EXISTS (SELECT FROM ${usage} AS u${ofUser ? ' WHERE user_id = $userId' : ''}) AS used`;
