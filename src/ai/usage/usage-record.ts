import * as z from 'zod';

/**
 * What one answered call used: a row of `usage_logs` before it is one. Fields that a later release
 * adds do not keep this one from taking over its journal.
 */
export const usageRecord = z.object({
  callId: z.uuid(),
  userId: z.string().min(1).max(255),
  agentId: z.string().max(255).nullable(),
  provider: z.string().max(50),
  /** The model that served: `<provider>/<model>`. */
  model: z.string().max(100),
  inputTokens: z.number().int().min(0),
  outputTokens: z.number().int().min(0),
  /** US dollars with six decimals. */
  costUsd: z.string(),
  /** The path that was called. */
  endpoint: z.string().max(255),
  /** ISO 8601. */
  at: z.string(),
  /** The reservation that held tokens for it, and how many; neither without a quota. */
  heldBy: z.uuid().optional(),
  held: z.number().int().min(0).optional(),
});

/** A call's part of a reservation. */
export interface HeldTokens {
  readonly heldBy: string;
  readonly held: number;
}

export type UsageRecord = z.output<typeof usageRecord>;
