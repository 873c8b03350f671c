import { PLATFORM_TOOLS } from '../../ai/usage/usage-record.js';
import type { UsageUnit } from './window.js';

/** 1 for a logged call of AI, and 0 for a call of the platform's own tools. */
const ONE_CALL = `(provider <> '${PLATFORM_TOOLS}')::int`;

const CALLS = `
  SELECT user_id, agent_id, created_at AS at, ${ONE_CALL} AS calls,
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

const DAY = `day::timestamp AT TIME ZONE 'UTC'`;

/** Without the tools' sums, which have a table of their own. */
const DAILY = `
  SELECT user_id, agent_id, ${DAY} AS at, calls, input_tokens + output_tokens AS tokens, cost_usd
    FROM usage_daily
  UNION ALL
  SELECT user_id, agent_id, ${DAY}, calls, input_tokens + output_tokens, cost_usd
    FROM usage_pending`;

const ROWS: Readonly<Record<UsageUnit, string>> = { calls: CALLS, hours: SUMMED, days: DAILY };

/** Returns a user's (`$userId`) usage from `$from` until `$to`; each call is in exactly one row. */
export const usageRows = (unit: UsageUnit) =>
  `(SELECT * FROM (${ROWS[unit]}) u
     WHERE u.user_id = $userId AND u.at >= $from::timestamptz AND u.at < $to::timestamptz)`;

/** Returns the sums of tools' calls; those of the summed days have no pending ones. */
export const toolsSql = (unit: UsageUnit) => `
  SELECT coalesce(sum(tool_calls), 0)::float8 AS calls,
         coalesce(sum(tool_successes), 0)::float8 AS successes,
         round(sum(tool_ms) / nullif(sum(tool_completed), 0))::float8 AS "avgMs"
    FROM ${unit === 'days' ? TOOLS_DAILY : usageRows(unit)} u`;

const TOOLS_DAILY = `
  (SELECT calls AS tool_calls, successes AS tool_successes, ms AS tool_ms,
          completed AS tool_completed
     FROM tool_usage_daily
    WHERE user_id = $userId AND day >= ($from::timestamptz AT TIME ZONE 'UTC')::date
      AND day < ($to::timestamptz AT TIME ZONE 'UTC')::date)`;

/** Returns the sums of usage rows as numbers: exact up to 2^53. */
export const USAGE_SUMS = `coalesce(sum(calls), 0)::float8 AS calls,
  coalesce(sum(tokens), 0)::float8 AS tokens, coalesce(sum(cost_usd), 0)::float8 AS "costUsd"`;

/**
 * Returns the usage of the last 24 hours, of one user (`$userId`) or all: sums by hour, and the single calls of
 * the hour in which the 24 hours began.
 */
export const lastDaySql = (ofUser: boolean) => {
  const own = ofUser ? 'AND user_id = $userId' : '';
  // Not a common table expression, whose value would not be a condition of the index.
  const hour = `date_trunc('hour', $from::timestamptz, 'UTC')`;
  return `
  WITH hours AS MATERIALIZED (
    SELECT u.* FROM (${SUMMED}) u WHERE u.at >= ${hour} ${own}
  ), calls AS (
    SELECT calls, tokens, cost_usd FROM hours WHERE at > ${hour}
    UNION ALL
    SELECT ${ONE_CALL}, input_tokens::bigint + output_tokens, cost_usd
      FROM (SELECT DISTINCT user_id FROM hours WHERE at = ${hour}) h
      JOIN usage_logs l ON l.user_id = h.user_id AND l.created_at >= $from::timestamptz
       AND l.created_at < ${hour} + interval '1 hour'
  )
  SELECT ${USAGE_SUMS} FROM calls`;
};
