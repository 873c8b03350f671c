import * as z from 'zod';
import type { ChatMessage } from '../../src/ai/completion.js';
import { demoModels, findDemoModel } from '../../src/ai/demo-models.js';
import { NoAnswerError } from '../../src/ai/no-answer-error.js';
import {
  BadRequestError,
  ServiceError,
  TooManyRequestsError,
  UnavailableError,
} from '../../src/errors.js';
import { ofField } from '../../src/field-name.js';
import { networksOf } from '../../src/http/client-networks.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { jsonBody, MAX_BODY_BYTES } from '../http/body-format.js';
import { reply } from '../http/reply.js';
import { callOf } from '../openai/complete.js';
import { presentUsage, usageItem } from '../views/token-usage.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/demo/chat';

/** Spec 4.6 and 8. */
const MAX_TOKENS = 1_024;
const MAX_ENTRY_LENGTH = 4_000;
/** The contract has none; what strangers have read is paid for all the same. */
const MAX_MESSAGE_LENGTH = 32_000;
const MAX_ENTRIES = 50;

/** On whose account the demo is: it has the quota of a `label` subscriber. */
const DEMO = { userId: 'demo', plan: 'label', isAdmin: false } as const;

/** What others than the visitor are said to have said is left out, and may be anything. */
const entry = z
  .object({
    role: z.string(),
    content: z.unknown().optional().describe('Text, where `role` is `user`'),
  })
  .refine(({ role, content }) => role !== 'user' || typeof content === 'string', {
    path: ['content'],
    ...ofField('must be text'),
  });

const demo = area({ tag: 'Demo', auth: anonymous, limit: LIMITS.demo });

/** The keyless demo chat (spec 4.6). */
export function demoEndpoints({ ai, demoShares }: WebDependencies) {
  const models = demoModels((each) => ai.router.available(each));
  return [
    demo({
      method: 'GET',
      path: PATH,
      summary: 'What the demo chat offers',
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
          models: models.map(({ id, name, provider }) => ({ id, name, provider })),
          mode: 'demo',
          message: 'A demo without an account: short answers, and only so many a minute.',
        }),
    }),
    demo({
      method: 'POST',
      path: PATH,
      summary: 'Ask a model without an account',
      body: jsonBody(
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
        MAX_BODY_BYTES,
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
        const asked = body.model === undefined ? models[0] : findDemoModel(body.model);
        if (!asked) throw new BadRequestError('model must be one of those that GET lists');
        const messages: ChatMessage[] = [
          ...said(body.conversation ?? []),
          { role: 'user', content: body.message },
        ];
        const call = callOf({
          entitlement: DEMO,
          agentId: 'demo-chat',
          endpoint: PATH,
          route: routeTo(asked.id),
          request: { messages, max_tokens: MAX_TOKENS },
          signal,
        });
        const settle = demoShares.hold(networksOf(clientAddress), estimate(messages));
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
          // Who leaves before the answer is there may have had it made; nobody else has used anything.
          if (!signal.aborted) settle(0);
          if (error instanceof TooManyRequestsError) throw tooMany();
          if (!(error instanceof NoAnswerError)) throw error;
          if (error.refusal instanceof TooManyRequestsError) throw tooMany();
          throw new ServiceError(500, 'Failed to get response', undefined, {}, { cause: error });
        }
      },
    }),
  ];

  /** The demo may ask for what it lists, whatever plan has it. */
  function routeTo(id: string) {
    try {
      return ai.router.forModel(id, 'network');
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      throw new UnavailableError('Demo unavailable — service not configured.', { cause: error });
    }
  }
}

/** Tokens of a call, of which the answer then tells the real number. */
const estimate = (messages: readonly ChatMessage[]): number =>
  Math.ceil(JSON.stringify(messages).length / 4) + MAX_TOKENS;

const tooMany = () => new TooManyRequestsError('Too many requests');

/** What the visitor said before; what is said to be a model's answer is not taken from them. */
function said(conversation: readonly z.infer<typeof entry>[]): ChatMessage[] {
  const texts = conversation.flatMap(({ role, content }) =>
    role === 'user' && typeof content === 'string' && content !== '' ? [content] : [],
  );
  return texts
    .slice(-MAX_ENTRIES)
    .map((text) => ({ role: 'user', content: text.slice(0, MAX_ENTRY_LENGTH) }));
}
