import * as z from 'zod';
import type { Ai } from '../ai/routing/ai.js';
import { NoAnswerError } from '../ai/routing/no-answer-error.js';
import type { Router } from '../ai/routing/route.js';
import { UnavailableError } from '../lib/errors.js';
import { gatewayAction } from './gateway-action.js';

const MAX_TOKENS = 1_024;

/**
 * Maximum number of bytes of all messages. A message never has more tokens than bytes, so a call costs less
 * than its price.
 */
const MAX_BYTES = 16_000;
const MAX_MESSAGES = 50;

/** The account of these calls: the platform itself buys the completions. Their buyers are the owners. */
const GATEWAY = { userId: 'gateway', agentId: 'gateway', plan: undefined } as const;

const PATH = '/api/v1/gateway';

export const aiChat = ({ completions, router }: Pick<Ai, 'completions' | 'router'>) =>
  gatewayAction({
    plugin: 'ai',
    action: 'chat',
    description: `The answer of a small language model, at most ${MAX_TOKENS} tokens`,
    price: 10_000n,
    input: z.strictObject({
      messages: z
        .array(
          z.strictObject({
            role: z.enum(['system', 'user', 'assistant']),
            content: z.string().min(1).max(MAX_BYTES),
          }),
        )
        .min(1)
        .max(MAX_MESSAGES)
        .refine(
          (messages) =>
            messages.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0) <= MAX_BYTES,
          `input.messages must be at most ${MAX_BYTES} bytes together`,
        )
        .describe('The conversation, oldest message first'),
      max_tokens: z.number().int().min(1).max(MAX_TOKENS).default(MAX_TOKENS),
    }),
    async run(request, { buyer: owner, id: callId, signal }) {
      const route = routeTo(router);
      const call = { ...GATEWAY, owner, callId, endpoint: PATH, route, request, signal };
      try {
        const { completion, model, usage } = await completions.answer(call);
        const { inputTokens, outputTokens } = usage;
        return { model, content: completion.content, usage: { inputTokens, outputTokens } };
      } catch (error) {
        throw error instanceof NoAnswerError ? error.refusal : error;
      }
    },
  });

/** Routes to one model at all its providers: the buyer paid for this model and gets no other. */
function routeTo(router: Router) {
  const models = router.models.current;
  const served = models.gatewayFamilies
    .flatMap((family) => models.ofFamily(family))
    .find(({ available }) => available);
  if (!served)
    throw new UnavailableError('No AI provider is configured: set the API key of a provider');
  return router
    .forModel(served.id, 'network')
    .filter(({ entry }) => entry?.family === served.family);
}
