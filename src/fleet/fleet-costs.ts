import { costReport } from '../ai/usage/cost-dashboard.js';
import { daysOf, lastDays, monthToDate, type Period } from '../ai/usage/period.js';
import { usageDaily } from '../ai/usage/reports.js';
import type { TenantDatabase } from '../platform/database/database.js';

export const COST_PERIODS = ['7d', '30d', 'mtd'] as const;

export type CostPeriod = (typeof COST_PERIODS)[number];

const PERIODS: Readonly<Record<CostPeriod, (now: Date) => Period>> = {
  '7d': (now) => lastDays(7, now),
  '30d': (now) => lastDays(30, now),
  mtd: monthToDate,
};

/** Days whose average the rest of the month is expected to cost, including today. */
const PROJECTED_FROM_DAYS = 7;

/** Costs in US dollars with at most six decimals. */
export interface FleetCosts extends Period {
  readonly totalCost: number;
  /** Highest cost first; `share` of the total cost, from 0 to 1. */
  readonly agents: readonly {
    /** Null for calls without an agent. */
    readonly agentId: string | null;
    readonly name: string;
    readonly cost: number;
    readonly tokens: number;
    readonly calls: number;
    readonly share: number;
  }[];
  /** Every day of the period in ascending order. */
  readonly daily: readonly { readonly date: string; readonly cost: number }[];
  /** This month's cost so far, and the recent average for each of its remaining days. */
  readonly projectedMonthCost: number;
}

/** Returns a tenant's costs by agent and day, from the sums of the usage reports. */
export async function fleetCosts(
  tenant: TenantDatabase,
  period: CostPeriod,
  now: Date,
): Promise<FleetCosts> {
  const days = PERIODS[period](now);
  const [{ agentIds, agents, daily, summary }, projectedMonthCost] = await Promise.all([
    costReport(tenant, days),
    projectedCost(tenant, now),
  ]);
  const { totalCost } = summary;
  return {
    ...days,
    totalCost,
    agents: agents.map(({ calls, cost, name, tokens }, index) => {
      const share = totalCost === 0 ? 0 : cost / totalCost;
      const agentId = agentIds[index] ?? '';
      return {
        agentId: agentId === '' ? null : agentId,
        ...{ name, cost, tokens, calls, share },
      };
    }),
    daily: daily.map(({ cost, date }) => ({ date, cost })),
    projectedMonthCost,
  };
}

async function projectedCost(tenant: TenantDatabase, now: Date): Promise<number> {
  const month = monthToDate(now);
  const recent = lastDays(PROJECTED_FROM_DAYS, now);
  const from = month.from < recent.from ? month.from : recent.from;
  const used = await usageDaily(tenant, { from, to: month.to });
  // Millionths, so that sums are exact.
  const microsSince = (first: string) =>
    used.reduce((sum, { costUsd, day }) => sum + (day < first ? 0 : Math.round(costUsd * 1e6)), 0);
  const daysOfMonth = new Date(
    Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0),
  ).getUTCDate();
  const remaining = daysOfMonth - daysOf(month).length;
  const average = microsSince(recent.from) / PROJECTED_FROM_DAYS;
  return Math.round(microsSince(month.from) + average * remaining) / 1e6;
}
