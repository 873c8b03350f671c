import * as z from 'zod';
import type { ChatMessage } from '../../src/ai/completion/completion.js';
import { demoModels, findDemoModel } from '../../src/ai/routing/demo-models.js';
import { NoAnswerError } from '../../src/ai/routing/no-answer-error.js';
import {
  BadRequestError,
  ServiceError,
  TooManyRequestsError,
  UnavailableError,
} from '../../src/lib/errors.js';
import { fieldMessage } from '../../src/lib/field-name.js';
import { sanitizeForJsonb } from '../../src/lib/well-formed.js';
import { networksOf } from '../../src/platform/http/client-networks.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { passedOnBody } from '../http/body-format.js';
import { reply } from '../http/reply.js';
import { callOf } from '../openai/complete.js';
import { presentUsage, usageItem } from '../views/token-usage.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/demo/chat';

/** Spec 4.6 and 8. */
const MAX_TOKENS = 1_024;
const MAX_ENTRY_LENGTH = 4_000;
/** Our own limit, absent from the contract: the input of anonymous visitors costs money too. */
const MAX_MESSAGE_LENGTH = 32_000;
const MAX_ENTRIES = 50;

/** The account of the demo, with the quota of a `label` subscriber. */
const DEMO = { userId: 'demo', plan: 'label', isAdmin: false } as const;

/** Only the visitor's own entries are validated; all others are dropped. */
const entry = z
  .object({
    role: z.string(),
    content: z.unknown().optional().describe('Text if `role` is `user`'),
  })
  .refine(({ role, content }) => role !== 'user' || typeof content === 'string', {
    path: ['content'],
    ...fieldMessage('must be text'),
  });

const demo = area({ tag: 'Demo', auth: anonymous, limit: LIMITS.demo });

/** Creates the keyless demo chat (spec 4.6). */
export function demoEndpoints({ ai, demoBudget }: WebDependencies) {
  return [
    demo({
      method: 'GET',
      path: PATH,
      operationId: 'describeDemo',
      summary: 'Describe the demo chat and list its models',
      responses: {
        200: z.strictObject({
          models: z.array(
            z.strictObject({ id: z.string(), name: z.string(), provider: z.string() }),
          ),
          mode: z.literal('demo'),
          message: z.string(),
        }),
      },
      handler: () =>
        reply(200, {
          models: demoModels(ai.models.current).map(({ id, name, provider }) => ({
            id,
            name,
            provider,
          })),
          mode: 'demo',
          message: 'Demo without an account: short answers, and a limited number per minute.',
        }),
    }),
    demo({
      method: 'POST',
      path: PATH,
      operationId: 'sendDemoMessage',
      summary: 'Send a message to a model, without an account',
      body: passedOnBody(
        z.object({
          message: z
            .string({ error: 'Message required' })
            .trim()
            .min(1, { error: 'Message required' })
            .max(MAX_MESSAGE_LENGTH, {
              error: `message must be at most ${MAX_MESSAGE_LENGTH} characters`,
            }),
          model: z.string().max(200).optional(),
          mode: z.string().max(50).optional(),
          conversation: z.array(entry).optional(),
        }),
      ),
      responses: {
        200: z.strictObject({
          id: z.string(),
          model: z.string(),
          message: z.string(),
          usage: usageItem,
          done: z.literal(true),
        }),
      },
      errors: [429, 503],
      async handler({ body, clientAddress, signal }) {
        const models = ai.models.current;
        const requested =
          body.model === undefined ? demoModels(models)[0] : findDemoModel(models, body.model);
        if (!requested) throw new BadRequestError('model must be one of those listed by GET');
        const messages: ChatMessage[] = [
          ...said(body.conversation ?? []),
          { role: 'user', content: body.message },
        ];
        const call = callOf({
          entitlement: DEMO,
          agentId: 'demo-chat',
          endpoint: PATH,
          route: routeTo(requested.id),
          request: { messages, max_tokens: MAX_TOKENS },
          signal,
        });
        const settle = demoBudget.hold(networksOf(clientAddress), estimate(messages));
        try {
          const { completion, model, usage } = await ai.completions.answer(call);
          settle(usage.inputTokens + usage.outputTokens);
          return reply(200, {
            id: call.callId,
            model,
            message: completion.content,
            usage: presentUsage(usage),
            done: true,
          });
        } catch (error) {
          // A failed call used nothing, unless the client disconnected during it.
          if (!signal.aborted) settle(0);
          const refusal = error instanceof NoAnswerError ? error.refusal : error;
          if (refusal instanceof TooManyRequestsError) {
            throw new TooManyRequestsError('Too many requests', refusal.limit);
          }
          if (!(error instanceof NoAnswerError)) throw error;
          throw new ServiceError(500, 'Failed to get response', undefined, {}, { cause: error });
        }
      },
    }),
  ];

  /** Returns the route to a model on the demo's list, regardless of its plan. */
  function routeTo(id: string) {
    try {
      return ai.router.forModel(id, 'network');
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      throw new UnavailableError('Demo unavailable — service not configured.', { cause: error });
    }
  }
}

/** Estimated tokens of a call, replaced by the actual number after the answer. */
const estimate = (messages: readonly ChatMessage[]): number =>
  Math.ceil(JSON.stringify(messages).length / 4) + MAX_TOKENS;

/** Returns the visitor's own earlier messages; a visitor could forge answers of the model. */
function said(conversation: readonly z.infer<typeof entry>[]): ChatMessage[] {
  const texts = conversation.flatMap(({ role, content }) =>
    role === 'user' && typeof content === 'string' && content !== '' ? [content] : [],
  );
  return texts
    .slice(-MAX_ENTRIES)
    .map((text) => ({ role: 'user', content: sanitizeForJsonb(text.slice(0, MAX_ENTRY_LENGTH)) }));
}
