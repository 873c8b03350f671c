import type { TenantDatabase } from '../../platform/database/database.js';
import type { Plan } from '../../types/plans.js';
import { agentCounts, type AgentCounts } from './agent-counts.js';
import { chatCounts } from './chat-figures.js';
import { availabilityOf, incidentsOf, incidentSums } from './incidents.js';
import { USAGE_SUMS, usageRows } from './usage-sql.js';
import { boundsOf, windowOfDays } from './window.js';

export interface UsageFigures {
  readonly calls: number;
  readonly tokens: number;
  /** US dollars with at most six decimals. */
  readonly costUsd: number;
}

export interface MetricSummary {
  /** Null without a subscription that holds. */
  readonly plan: Plan | null;
  readonly agents: AgentCounts;
  readonly usage: UsageFigures;
  readonly chat: { readonly turns: number; readonly failed: number };
  readonly incidents: { readonly crashes: number; readonly repairs: number };
  readonly availability: number | null;
}

const PLAN = `SELECT plan FROM current_subscription($userId, 'plan') WHERE holds`;

const USAGE = `SELECT ${USAGE_SUMS} FROM ${usageRows('days')} u`;

/** Sums up the last 30 days of a user's agents. */
export async function metricSummary(
  tenant: TenantDatabase,
  userId: string,
  now: Date,
): Promise<MetricSummary> {
  const window = windowOfDays(30, now);
  const [[subscription], agents, [usage], chat, incidents] = await Promise.all([
    tenant.query<{ plan: Plan }>(PLAN, { userId }),
    agentCounts(tenant),
    tenant.query<UsageFigures>(USAGE, { ...boundsOf(window), userId }, { plan: 'fresh' }),
    chatCounts(tenant, userId, window.from),
    incidentsOf(tenant, userId, { from: window.from, now }),
  ]);
  if (!usage) throw new TypeError('a sum over no rows must still return a row');
  return {
    plan: subscription?.plan ?? null,
    agents,
    usage,
    chat,
    incidents: incidentSums(incidents),
    availability: availabilityOf(incidents),
  };
}
