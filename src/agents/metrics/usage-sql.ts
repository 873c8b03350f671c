const CALLS = `
  SELECT user_id, agent_id, created_at AS at, 1 AS calls,
         input_tokens::bigint + output_tokens AS tokens, cost_usd,
         tool_calls, tool_completed, tool_successes, tool_ms
    FROM usage_logs`;

const SUMMED = `
  SELECT user_id, agent_id, hour AS at, calls, tokens, cost_usd,
         tool_calls, tool_completed, tool_successes, tool_ms
    FROM usage_hourly
  UNION ALL
  SELECT user_id, agent_id, hour, calls, input_tokens + output_tokens, cost_usd,
         tool_calls, tool_completed, tool_successes, tool_ms
    FROM usage_pending`;

/**
 * Returns the rows with a user's (`$userId`) usage from `$from` until `$to`: single calls, or sums by hour, of
 * which each call is in exactly one.
 */
export const usageRows = (ofHours: boolean) =>
  `(SELECT * FROM (${ofHours ? SUMMED : CALLS}) u
     WHERE u.user_id = $userId AND u.at >= $from::timestamptz AND u.at < $to::timestamptz)`;

/** Returns the sums of usage rows as numbers: exact up to 2^53. */
export const USAGE_SUMS = `coalesce(sum(calls), 0)::float8 AS calls,
  coalesce(sum(tokens), 0)::float8 AS tokens, coalesce(sum(cost_usd), 0)::float8 AS "costUsd"`;

/**
 * Returns the usage of the last 24 hours, of one user (`$userId`) or all: sums by hour, and the single calls of
 * the hour in which the 24 hours began.
 */
export const lastDaySql = (ofUser: boolean) => {
  const own = ofUser ? 'AND user_id = $userId' : '';
  return `
  WITH bound AS (
    SELECT $from::timestamptz AS since, date_trunc('hour', $from::timestamptz, 'UTC') AS hour
  ), hours AS (
    SELECT u.* FROM (${SUMMED}) u, bound WHERE u.at >= bound.hour ${own}
  ), calls AS (
    SELECT calls, tokens, cost_usd FROM hours, bound WHERE at > bound.hour
    UNION ALL
    SELECT 1, input_tokens::bigint + output_tokens, cost_usd
      FROM bound
      JOIN (SELECT DISTINCT user_id, at FROM hours) h ON h.at = bound.hour
      JOIN usage_logs l ON l.user_id = h.user_id AND l.created_at >= bound.since
       AND l.created_at < bound.hour + interval '1 hour'
  )
  SELECT ${USAGE_SUMS} FROM calls`;
};
