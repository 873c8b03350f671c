import * as z from 'zod';

const sums = {
  input_tokens: z.int(),
  output_tokens: z.int(),
  total_tokens: z.int(),
  cost_usd: z.number().describe('US dollars, at most six decimals'),
};

const model = { model: z.string(), provider: z.string() };

export const summaryRow = z
  .strictObject({
    date: z.iso.date(),
    agent_id: z.string().nullable().describe('null for calls without an agent'),
    ...model,
    ...sums,
    turn_count: z.int().describe('Calls'),
  })
  .meta({ id: 'UsageRow' });

export const perModelOfAgent = z
  .strictObject({
    ...model,
    ...sums,
    events: z.int().describe('Calls'),
  })
  .meta({ id: 'AgentModelUsage' });

export const perModel = z
  .strictObject({ ...model, ...sums, turns: z.int().describe('Calls') })
  .meta({ id: 'ModelUsage' });

export const perDay = z
  .strictObject({
    date: z.iso.date(),
    total_tokens: sums.total_tokens,
    cost_usd: sums.cost_usd,
    turns: z.int().describe('Calls'),
  })
  .meta({ id: 'DailyUsage' });

export const ofTool = z
  .strictObject({
    tool_name: z.string(),
    calls: z.int(),
    successes: z.int().describe('Calls with a result that is no failure'),
    avg_ms: z.number().nullable().describe('Milliseconds until the result; null without a result'),
  })
  .meta({ id: 'ToolUsage' });
