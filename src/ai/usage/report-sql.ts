/**
 * The sums of every call that is logged, as of one statement. A call is in `usage_pending` from its
 * own transaction on, and leaves it with the transaction that adds it to `usage_daily`: a statement
 * sees it in exactly one of the two, whenever it was logged and whatever day it counts for. So every
 * report reads both in one statement, and none reads `usage_logs`.
 */
export const ROLLED_UP = `
  (SELECT user_id, day, agent_id, provider, model, input_tokens, output_tokens, cost_usd, calls
     FROM usage_daily
   UNION ALL
   SELECT user_id, day, agent_id, provider, model, input_tokens, output_tokens, cost_usd, calls
     FROM usage_pending)`;

/** Which rows of it a report is about. */
export interface Scope {
  /** Where the sums are read. */
  readonly usage: string;
  /** One user's (`$userId`), or everybody's. */
  readonly ofUser: boolean;
}

/** Days are `$from` to `$to`. */
const within = ({ usage, ofUser }: Scope) =>
  `FROM ${usage} AS u WHERE day BETWEEN $from AND $to${ofUser ? ' AND user_id = $userId' : ''}`;

// As numbers: exact up to 2^53, and dollars with six decimals up to nine billion.
const SUMS = `sum(input_tokens)::float8 AS "inputTokens", sum(output_tokens)::float8 AS "outputTokens",
  sum(input_tokens + output_tokens)::float8 AS "totalTokens", sum(cost_usd)::float8 AS "costUsd",
  sum(calls)::float8 AS calls`;

/**
 * Day by day, the last one first; of a day by agent, provider and model. `$limit` rows, after the
 * row of `$afterDay`, `$afterAgent`, `$afterProvider` and `$afterModel` if there is one.
 */
export const summarySql = (scope: Scope, after: boolean) => `
  SELECT day::text AS day, agent_id AS "agentId", provider, model, ${SUMS}
  ${within(scope)}${after ? AFTER : ''}
  GROUP BY u.day, agent_id, provider, model
  ORDER BY u.day DESC, agent_id, provider, model LIMIT $limit`;

const AFTER = ` AND (day < $afterDay OR (day = $afterDay
  AND (agent_id, provider, model) > ($afterAgent, $afterProvider, $afterModel)))`;

/** By provider and model, what cost most first; of one agent (`$agentId`), or of all. */
export const byModelSql = (scope: Scope, ofAgent: boolean) => `
  SELECT provider, model, ${SUMS}
  ${within(scope)}${ofAgent ? ' AND agent_id = $agentId' : ''}
  GROUP BY provider, model ORDER BY sum(cost_usd) DESC, provider, model LIMIT $limit`;

/** The days on which there were calls, the first one first. */
export const dailySql = (scope: Scope) => `
  SELECT day::text AS day, ${SUMS}
  ${within(scope)} GROUP BY u.day ORDER BY u.day`;

/**
 * All that a dashboard shows: a row for all, one for each day, for each agent's calls to a model,
 * and for each model. What a row is not about is null. Costs are in millionths of a dollar.
 */
export const costSql = (scope: Scope) => `
  SELECT day::text AS day, agent_id AS "agentId", model,
         coalesce(sum(input_tokens + output_tokens), 0)::float8 AS tokens,
         coalesce(sum(cost_usd) * 1000000, 0)::float8 AS micros,
         coalesce(sum(calls), 0)::float8 AS calls
  ${within(scope)} GROUP BY GROUPING SETS ((), (u.day), (agent_id, model), (model))`;

/** Whether there was ever a call. */
export const usedSql = ({ usage, ofUser }: Scope) =>
  `SELECT EXISTS (SELECT FROM ${usage} AS u${ofUser ? ' WHERE user_id = $userId' : ''}) AS used`;
