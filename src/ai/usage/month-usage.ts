import type { TenantDatabase } from '../../platform/database/database.js';
import { monthToDate } from './period.js';
import { usageDaily } from './reports.js';

/** A user's AI calls in this calendar month (UTC). */
export interface MonthUsage {
  /** `YYYY-MM`. */
  readonly month: string;
  /** Tokens that count against the plan's quota. */
  readonly quotaTokens: number;
  /** US dollars in millionths. */
  readonly micros: bigint;
  readonly calls: number;
}

/** Returns a user's usage of this month, as of this moment. */
export async function monthUsage(
  tenant: TenantDatabase,
  userId: string,
  now = new Date(),
): Promise<MonthUsage> {
  const period = monthToDate(now);
  const [days, [quota]] = await Promise.all([
    usageDaily(tenant, period),
    tenant.query<{ used: string }>(
      'SELECT used::text FROM token_quotas WHERE user_id = $userId AND month = $month::date',
      { userId, month: period.from },
    ),
  ]);
  return {
    month: period.from.slice(0, 'yyyy-mm'.length),
    quotaTokens: Number(quota?.used ?? 0),
    micros: days.reduce((sum, { costUsd }) => sum + BigInt(Math.round(costUsd * 1e6)), 0n),
    calls: days.reduce((sum, { calls }) => sum + calls, 0),
  };
}
