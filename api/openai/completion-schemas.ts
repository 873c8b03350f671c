import * as z from 'zod';

const MAX_MODEL_LENGTH = 200;
/** Maximum number of choices per request; each choice is paid for. */
const MAX_ANSWERS = 8;
/** Upper bound; no model generates more in one answer. */
const MAX_OUTPUT_TOKENS = 1_000_000;

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;

export const maxTokens = z.number().int().min(1).max(MAX_OUTPUT_TOKENS);

/** A message of OpenAI's chat completions; the domain validates the remaining properties. */
const message = z.looseObject({
  role: z.enum(ROLES),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()]).optional(),
});

/** The body of `POST /v1/chat/completions`: only properties that we use are validated. */
export const completionBody = z
  .looseObject({
    model: z.string().min(1).max(MAX_MODEL_LENGTH).optional(),
    messages: z.array(message).min(1),
    stream: z.boolean().nullish(),
    max_tokens: maxTokens.nullish(),
    max_completion_tokens: maxTokens.nullish(),
    n: z.number().int().min(1).max(MAX_ANSWERS).nullish(),
  })
  .meta({ id: 'ChatCompletionOrder' });

export type CompletionBody = z.output<typeof completionBody>;

export const completionAnswer = z
  .looseObject({ choices: z.array(z.looseObject({})) })
  .meta({ id: 'ChatCompletion' });

export const modelList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(
      z.strictObject({
        id: z.string().meta({ examples: ['claude-opus-4-6'] }),
        object: z.literal('model'),
        created: z.int(),
        owned_by: z.string(),
      }),
    ),
  })
  .meta({ id: 'OpenAiModels' });

export const presentModel = (id: string, owner: string) => ({
  id,
  object: 'model' as const,
  created: 0,
  owned_by: owner,
});
