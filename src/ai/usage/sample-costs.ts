import type { CostDashboard } from './cost-dashboard.js';
import { daysOf, type Period } from './period.js';

/** Totals for each day, equal to the sums of the samples below. */
const DAILY = { cost: 0.42, tokens: 90_000, calls: 60 };

const SAMPLES = [
  { name: 'Research assistant', model: 'anthropic/claude-sonnet-4', share: 0.6 },
  { name: 'Support desk', model: 'openai/gpt-4o-mini', share: 0.3 },
  { name: 'Daily digest', model: 'google/gemini-2.5-flash', share: 0.1 },
];

/** Returns a sample dashboard for a tenant without usage. Never mixed with real data. */
export function sampleCosts(period: Period): CostDashboard {
  const days = daysOf(period);
  const part = (daily: number, share: number) => round(daily * days.length * share);
  return {
    summary: {
      totalCost: part(DAILY.cost, 1),
      totalTokens: part(DAILY.tokens, 1),
      totalCalls: part(DAILY.calls, 1),
      avgCostPerCall: round(DAILY.cost / DAILY.calls),
    },
    agents: SAMPLES.map(({ name, model, share }) => ({
      name,
      tokens: part(DAILY.tokens, share),
      cost: part(DAILY.cost, share),
      calls: part(DAILY.calls, share),
      avgCostPerCall: round(DAILY.cost / DAILY.calls),
      model,
    })),
    daily: days.map((date) => ({ date, cost: DAILY.cost, tokens: DAILY.tokens })),
    modelBreakdown: SAMPLES.map(({ model, share }) => ({
      model,
      percent: Math.round(share * 100),
      cost: part(DAILY.cost, share),
    })),
  };
}

const round = (value: number): number => Math.round(value * 1e6) / 1e6;
