import type { TenantDatabase } from '../../platform/database/database.js';
import type { Period } from './period.js';
import { byModelSql, dailySql, ROLLED_UP, summarySql, type Scope } from './report-sql.js';

/** What calls used, and what they cost. */
export interface UsageSums {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** US dollars with at most six decimals. */
  readonly costUsd: number;
  readonly calls: number;
}

export interface ModelUsage extends UsageSums {
  readonly provider: string;
  readonly model: string;
}

export interface DayUsage extends UsageSums {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
}

export interface SummaryUsage extends ModelUsage, DayUsage {
  /** '' for calls without an agent. */
  readonly agentId: string;
}

/** The place in a summary after which a page begins. */
export type SummaryPosition = Pick<SummaryUsage, 'day' | 'agentId' | 'provider' | 'model'>;

/** Models that one report names: what cost least is left out. */
const MAX_MODELS = 1_000;

/** What was used a day, by agent and model: the tenant's, or everybody's for the platform. */
export function usageSummary(
  tenant: TenantDatabase,
  period: Period,
  page: { readonly limit: number; readonly after?: SummaryPosition | undefined },
): Promise<SummaryUsage[]> {
  const { limit, after } = page;
  return report<SummaryUsage>(tenant, summarySql(scopeOf(tenant), after !== undefined), {
    ...period,
    limit,
    ...(after && {
      afterDay: after.day,
      afterAgent: after.agentId,
      afterProvider: after.provider,
      afterModel: after.model,
    }),
  });
}

/** What each model was used, what cost most first. @param agentId by this agent alone. */
export function usageByModel(
  tenant: TenantDatabase,
  period: Period,
  agentId?: string,
): Promise<ModelUsage[]> {
  return report<ModelUsage>(tenant, byModelSql(scopeOf(tenant), agentId !== undefined), {
    ...period,
    limit: MAX_MODELS,
    ...(agentId !== undefined && { agentId }),
  });
}

/** What was used on each day with calls, the first one first. */
export function usageDaily(tenant: TenantDatabase, period: Period): Promise<DayUsage[]> {
  return report<DayUsage>(tenant, dailySql(scopeOf(tenant)), { ...period });
}

/** What the tenant's reports are about. */
export const scopeOf = ({ userId }: TenantDatabase): Scope => ({
  usage: ROLLED_UP,
  ofUser: userId !== undefined,
});

/** Runs a query within the tenant's scope. */
export function report<Row extends object>(
  tenant: TenantDatabase,
  sql: string,
  bind: Readonly<Record<string, string | number>>,
): Promise<Row[]> {
  const { userId } = tenant;
  return tenant.query(sql, { ...bind, ...(userId !== undefined && { userId }) }, { plan: 'anew' });
}
