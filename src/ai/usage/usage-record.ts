import * as z from 'zod';
import { toolCounts } from './tool-counts.js';

/**
 * Provider and model in the records of the platform's own tools. Such a record is of a kind of its own: a row of
 * `usage_logs` that is no call of AI.
 */
export const PLATFORM_TOOLS = 'hostmcp';

/** A row of `usage_logs`. Unknown fields are ignored: this release can read the journal of a later one. */
export const usageRecord = z.object({
  callId: z.uuid(),
  userId: z.string().min(1).max(255),
  agentId: z.string().max(255).nullable(),
  provider: z.string().max(50),
  /** The model that answered: `<provider>/<model>`. */
  model: z.string().max(100),
  inputTokens: z.number().int().min(0),
  outputTokens: z.number().int().min(0),
  /** Input tokens that came from the provider's prompt cache, and those written to it. */
  cacheReadTokens: z.number().int().min(0).optional(),
  cacheWriteTokens: z.number().int().min(0).optional(),
  /** US dollars with six decimals. */
  costUsd: z.string(),
  /** True for a call by the caller's own key, which counts against no quota. */
  ownKey: z.literal(true).optional(),
  endpoint: z.string().max(255),
  /** Calls and results of tools; missing without any. A form of a later release counts as missing. */
  tools: toolCounts.optional().catch(undefined),
  /** ISO 8601. */
  at: z.string(),
  /** The reservation that held tokens for the call, and the number held; both missing without a quota. */
  heldBy: z.uuid().optional(),
  held: z.number().int().min(0).optional(),
});

export interface HeldTokens {
  readonly heldBy: string;
  readonly held: number;
}

export type UsageRecord = z.output<typeof usageRecord>;
