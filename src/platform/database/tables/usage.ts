import { literal } from 'sequelize';
import { ownedThrough, summedThrough } from '../schema/policies.js';
import {
  bigint,
  date,
  decimal,
  index,
  integer,
  key,
  nullable,
  serial,
  table,
  timestamp,
  unique,
  uuid,
  varchar,
  withDefault,
} from '../schema/table.js';

/** Sums of tools' calls. */
const toolSums = {
  toolCalls: bigint(),
  /** Calls with a result, those of them that did not fail, and the milliseconds until their results. */
  toolCompleted: bigint(),
  toolSuccesses: bigint(),
  toolMs: bigint(),
};

const none = () => withDefault(bigint(), literal('0'));

/** The same, 0 by default. */
const toolSumsOrNone = {
  toolCalls: none(),
  toolCompleted: none(),
  toolSuccesses: none(),
  toolMs: none(),
};

/** Usage of answered AI calls. */
export const usageLogs = table(
  'usage_logs',
  {
    id: key(serial()),
    callId: uuid(),
    userId: varchar(255),
    agentId: nullable(varchar(255)),
    provider: varchar(50),
    model: varchar(100),
    inputTokens: withDefault(integer(), 0),
    outputTokens: withDefault(integer(), 0),
    /** US dollars. */
    costUsd: withDefault(decimal(10, 6), literal('0')),
    endpoint: varchar(255),
    createdAt: timestamp(),
    /** Input tokens that came from the provider's prompt cache, and those written to it. */
    cacheReadTokens: withDefault(integer(), 0),
    cacheWriteTokens: withDefault(integer(), 0),
    ...toolSumsOrNone,
  },
  [
    unique('usage_logs_call_id_key', ['call_id']),
    index('usage_logs_user_time', ['user_id', 'created_at']),
  ],
  ownedThrough('user_id'),
);

/** Users' tokens in a calendar month (UTC): used, and held for calls in flight. */
export const tokenQuotas = table(
  'token_quotas',
  {
    userId: key(varchar(255)),
    /** First day of the month. */
    month: key(date()),
    used: bigint(),
    held: bigint(),
  },
  [],
  ownedThrough('user_id'),
);

/** Tokens held for calls until these are settled, or their process stops renewing the reservation. */
export const quotaReservations = table(
  'quota_reservations',
  {
    callId: key(uuid()),
    userId: varchar(255),
    month: date(),
    tokens: bigint(),
    expiresAt: timestamp(),
  },
  [index('quota_reservations_expires_at', ['expires_at'])],
  ownedThrough('user_id'),
);

/** Usage and cost of a user's calls to one model. */
const sums = {
  inputTokens: bigint(),
  outputTokens: bigint(),
  costUsd: decimal(16, 6),
  calls: integer(),
};

/** Daily sums (UTC), without those in `usage_pending`. */
export const usageDaily = table(
  'usage_daily',
  {
    userId: key(varchar(255)),
    day: key(date()),
    /** Empty for calls without an agent. */
    agentId: key(varchar(255)),
    provider: key(varchar(50)),
    model: key(varchar(100)),
    ...sums,
  },
  [index('usage_daily_day', ['day']), index('usage_daily_agent_day', ['agent_id', 'day'])],
  summedThrough('user_id'),
);

/** Daily sums (UTC) of tools' calls. */
export const toolUsageDaily = table(
  'tool_usage_daily',
  {
    userId: key(varchar(255)),
    day: key(date()),
    /** Empty for calls without an agent. */
    agentId: key(varchar(255)),
    tool: key(varchar(128)),
    calls: bigint(),
    /** Calls with a result, those of them that did not fail, and the milliseconds until their results. */
    completed: bigint(),
    successes: bigint(),
    ms: bigint(),
  },
  [index('tool_usage_daily_day', ['day'])],
  summedThrough('user_id'),
);

/** Sums by hour, without those in `usage_pending`; kept for a limited time. */
export const usageHourly = table(
  'usage_hourly',
  {
    userId: key(varchar(255)),
    hour: key(timestamp()),
    /** Empty for calls without an agent. */
    agentId: key(varchar(255)),
    calls: bigint(),
    tokens: bigint(),
    costUsd: decimal(16, 6),
    ...toolSums,
  },
  [index('usage_hourly_hour', ['hour'])],
  summedThrough('user_id'),
);

/** Sums of calls that were logged together, until they are added to their day's row. */
export const usagePending = table(
  'usage_pending',
  {
    id: key(serial()),
    userId: varchar(255),
    day: date(),
    agentId: varchar(255),
    provider: varchar(50),
    model: varchar(100),
    ...sums,
    /** Null for sums of a release that had no sums by hour. */
    hour: nullable(timestamp()),
    ...toolSumsOrNone,
  },
  [index('usage_pending_user_day', ['user_id', 'day'])],
  summedThrough('user_id'),
);
