import * as z from 'zod';
import { maxTokens } from '../openai/completion-schemas.js';
import { usageItem } from '../views/token-usage.js';

export const timestamp = z.iso.datetime();

export const taskType = z.string().min(1).max(50);

export const chatBody = z
  .object({
    messages: z
      .array(
        z.object({ role: z.enum(['user', 'assistant', 'system']), content: z.string().min(1) }),
      )
      .min(1),
    model: z.string().min(1).max(200).optional(),
    taskType: taskType.optional(),
    temperature: z.number().min(0).max(2).optional(),
    top_p: z.number().min(0).max(1).optional(),
    max_tokens: maxTokens.optional(),
    stream: z.boolean().optional(),
  })
  .meta({ id: 'CompletionOrder' });

/** Included for administrators only. */
const attempts = z.array(
  z.strictObject({ provider: z.string(), model: z.string(), outcome: z.string(), ms: z.number() }),
);

export const chatAnswer = z
  .strictObject({
    id: z.string(),
    model: z.string(),
    provider: z.string(),
    message: z.strictObject({ role: z.literal('assistant'), content: z.string() }),
    usage: usageItem,
    timestamp,
    attempts: attempts.optional(),
  })
  .meta({ id: 'Completion' });

export const tokenCount = z.number().int().min(0).max(1_000_000_000);
