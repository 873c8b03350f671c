import type { TenantDatabase } from '../../platform/database/database.js';
import { costSql, usedSql } from './report-sql.js';
import { daysOf, type Period } from './period.js';
import { report, scopeOf } from './reports.js';
import { agentNames } from './agent-names.js';
import { percentagesOf } from './percentages.js';

/** Costs are in US dollars with at most six decimals. */
export interface CostDashboard {
  readonly summary: {
    readonly totalCost: number;
    readonly totalTokens: number;
    readonly totalCalls: number;
    readonly avgCostPerCall: number;
  };
  /** Highest cost first; `model` is the agent's most expensive one. */
  readonly agents: readonly {
    readonly name: string;
    readonly tokens: number;
    readonly cost: number;
    readonly calls: number;
    readonly avgCostPerCall: number;
    readonly model: string;
  }[];
  /** Every day of the period in ascending order. */
  readonly daily: readonly {
    readonly date: string;
    readonly cost: number;
    readonly tokens: number;
  }[];
  /** Highest cost first; the shares add up to 100, or to 0 if the total cost is 0. */
  readonly modelBreakdown: readonly {
    readonly model: string;
    readonly percent: number;
    readonly cost: number;
  }[];
}

/** Maximum number of agents and models that are listed; the cheapest are omitted. */
const MAX_NAMED = 500;

interface CostRow {
  readonly day: string | null;
  readonly agentId: string | null;
  readonly model: string | null;
  readonly tokens: number;
  /** Millionths of a dollar, so that sums are exact. */
  readonly micros: number;
  readonly calls: number;
}

interface AgentCost {
  readonly agentId: string;
  readonly tokens: number;
  readonly micros: number;
  readonly calls: number;
  readonly model: string;
}

/** A tenant's costs in a period. */
export interface CostReport extends CostDashboard {
  /** Ids of the agents, in their order; '' for calls without an agent. */
  readonly agentIds: readonly string[];
}

/** Returns a tenant's costs in a period; undefined if the tenant never made a call. */
export async function costDashboard(
  tenant: TenantDatabase,
  period: Period,
): Promise<CostDashboard | undefined> {
  const { agentIds: _agentIds, ...costs } = await costReport(tenant, period);
  if (costs.summary.totalCalls === 0 && !(await hasUsage(tenant))) return undefined;
  return costs;
}

/** Returns a tenant's costs in a period, with the ids of the agents. */
export async function costReport(tenant: TenantDatabase, period: Period): Promise<CostReport> {
  const rows = await report<CostRow>(tenant, costSql(scopeOf(tenant)), { ...period });
  const total = rows.find((row) => [row.day, row.agentId, row.model].every((of) => of === null));
  if (!total) throw new TypeError('a sum over no rows must still return a row');
  const agents = agentCosts(rows).sort(costliestFirst).slice(0, MAX_NAMED);
  const nameOf = await agentNames(
    tenant,
    agents.map(({ agentId }) => agentId),
  );
  return {
    agentIds: agents.map(({ agentId }) => agentId),
    summary: {
      totalCost: dollars(total.micros),
      totalTokens: total.tokens,
      totalCalls: total.calls,
      avgCostPerCall: average(total),
    },
    agents: agents.map((agent) => ({
      name: nameOf(agent.agentId),
      tokens: agent.tokens,
      cost: dollars(agent.micros),
      calls: agent.calls,
      avgCostPerCall: average(agent),
      model: agent.model,
    })),
    daily: dailyCosts(rows, period),
    modelBreakdown: modelCosts(rows),
  };
}

/** Returns the cost of each agent with calls in a period, by its id, in US dollars. */
export async function costsByAgent(
  tenant: TenantDatabase,
  period: Period,
): Promise<ReadonlyMap<string, number>> {
  const rows = await report<CostRow>(tenant, costSql(scopeOf(tenant)), { ...period });
  return new Map(agentCosts(rows).map(({ agentId, micros }) => [agentId, dollars(micros)]));
}

async function hasUsage(tenant: TenantDatabase): Promise<boolean> {
  const [row] = await report<{ used: boolean }>(tenant, usedSql(scopeOf(tenant)), {});
  return row?.used === true;
}

/** Combines the models of each agent under the name of the most expensive one. */
function agentCosts(rows: readonly CostRow[]): AgentCost[] {
  const byAgent = new Map<string, AgentCost>();
  for (const { agentId, model, tokens, micros, calls } of [...rows].sort(costliestFirst)) {
    if (agentId === null || model === null) continue;
    const before = byAgent.get(agentId) ?? { tokens: 0, micros: 0, calls: 0, model };
    byAgent.set(agentId, {
      agentId,
      tokens: before.tokens + tokens,
      micros: before.micros + micros,
      calls: before.calls + calls,
      model: before.model,
    });
  }
  return [...byAgent.values()];
}

function dailyCosts(rows: readonly CostRow[], period: Period): CostDashboard['daily'] {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  return daysOf(period).map((date) => {
    const { micros, tokens } = byDay.get(date) ?? { micros: 0, tokens: 0 };
    return { date, cost: dollars(micros), tokens };
  });
}

function modelCosts(rows: readonly CostRow[]): CostDashboard['modelBreakdown'] {
  const models = rows
    .filter(({ agentId, model }) => agentId === null && model !== null)
    .sort(costliestFirst);
  const percentages = percentagesOf(models.map(({ micros }) => micros));
  return models.slice(0, MAX_NAMED).map(({ model, micros }, index) => ({
    model: model ?? '',
    percent: percentages[index] ?? 0,
    cost: dollars(micros),
  }));
}

function costliestFirst(a: CostRow | AgentCost, b: CostRow | AgentCost): number {
  return (
    b.micros - a.micros ||
    b.tokens - a.tokens ||
    compare(a.model, b.model) ||
    compare(a.agentId, b.agentId)
  );
}

function compare(a: string | null, b: string | null): number {
  const [first, second] = [a ?? '', b ?? ''];
  return first < second ? -1 : Number(first > second);
}

const dollars = (micros: number): number => micros / 1e6;

const average = ({ micros, calls }: { micros: number; calls: number }): number =>
  calls === 0 ? 0 : dollars(Math.round(micros / calls));
