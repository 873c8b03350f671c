import { literal } from 'sequelize';
import { ownedThrough, summedThrough } from '../schema/policies.js';
import {
  bigint,
  date,
  decimal,
  integer,
  key,
  nullable,
  serial,
  table,
  timestamp,
  uuid,
  varchar,
  withDefault,
} from '../schema/table.js';

/** What answered AI calls used. */
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
  },
  [
    { name: 'usage_logs_call_id_key', unique: true, fields: ['call_id'] },
    { name: 'usage_logs_user_time', fields: ['user_id', 'created_at'] },
  ],
  ownedThrough('user_id'),
);

/** Users' tokens of a calendar month (UTC): used, and held for calls under way. */
export const tokenQuotas = table(
  'token_quotas',
  {
    userId: key(varchar(255)),
    /** Its first day. */
    month: key(date()),
    used: bigint(),
    held: bigint(),
  },
  [],
  ownedThrough('user_id'),
);

/** Tokens held for calls until they are settled, or until their process has not been heard of. */
export const quotaReservations = table(
  'quota_reservations',
  {
    callId: key(uuid()),
    userId: varchar(255),
    month: date(),
    tokens: bigint(),
    expiresAt: timestamp(),
  },
  [{ name: 'quota_reservations_expires_at', fields: ['expires_at'] }],
  ownedThrough('user_id'),
);

/** What a user's calls to one model used, and what they cost. */
const sums = {
  inputTokens: bigint(),
  outputTokens: bigint(),
  costUsd: decimal(16, 6),
  calls: integer(),
};

/** Days' sums (UTC), but for what is pending. */
export const usageDaily = table(
  'usage_daily',
  {
    userId: key(varchar(255)),
    day: key(date()),
    /** '' for calls without an agent. */
    agentId: key(varchar(255)),
    provider: key(varchar(50)),
    model: key(varchar(100)),
    ...sums,
  },
  [
    { name: 'usage_daily_day', fields: ['day'] },
    { name: 'usage_daily_agent_day', fields: ['agent_id', 'day'] },
  ],
  summedThrough('user_id'),
);

/** Sums of calls that were logged together, until they are added to their day's. */
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
  },
  [{ name: 'usage_pending_user_day', fields: ['user_id', 'day'] }],
  summedThrough('user_id'),
);
