import type { TenantDatabase } from '../../platform/database/database.js';
import type { Period } from './period.js';
import { byModelSql, dailySql, ROLLED_UP, summarySql, toolsSql, type Scope } from './report-sql.js';

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

/** The last row of the previous page of a summary. */
export type SummaryPosition = Pick<SummaryUsage, 'day' | 'agentId' | 'provider' | 'model'>;

/** Maximum number of models in one report; the cheapest are omitted. */
const MAX_MODELS = 1_000;

/** Maximum number of tools in one report; the least called are omitted. */
const MAX_TOOLS = 1_000;

/** Reports usage by day, agent and model: the tenant's, or all users' for the platform. */
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

/** Reports usage by model, highest cost first, for one agent or all. */
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

/** Reports usage for each day with calls in ascending order. */
export function usageDaily(tenant: TenantDatabase, period: Period): Promise<DayUsage[]> {
  return report<DayUsage>(tenant, dailySql(scopeOf(tenant)), { ...period });
}

export interface ToolUsage {
  readonly tool: string;
  readonly calls: number;
  readonly successes: number;
  /** Milliseconds until a result, without the calls that have none; null if none has. */
  readonly averageMs: number | null;
}

/** Reports calls of tools, most calls first, for one agent or all. */
export function usageByTool(
  tenant: TenantDatabase,
  period: Period,
  agentId?: string,
): Promise<ToolUsage[]> {
  const sql = toolsSql(tenant.userId !== undefined, agentId !== undefined);
  return report<ToolUsage>(tenant, sql, {
    ...period,
    limit: MAX_TOOLS,
    ...(agentId !== undefined && { agentId }),
  });
}

export const scopeOf = ({ userId }: TenantDatabase): Scope => ({
  usage: ROLLED_UP,
  ofUser: userId !== undefined,
});

export function report<Row extends object>(
  tenant: TenantDatabase,
  sql: string,
  bind: Readonly<Record<string, string | number>>,
): Promise<Row[]> {
  const { userId } = tenant;
  return tenant.query(sql, { ...bind, ...(userId !== undefined && { userId }) }, { plan: 'fresh' });
}
