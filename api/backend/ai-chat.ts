import * as z from 'zod';
import type { Entitlement } from '../../src/accounts/accounts/entitlement.js';
import type { Call, Served, Streaming } from '../../src/ai/routing/completions.js';
import { NoAnswerError } from '../../src/ai/routing/no-answer-error.js';
import { ProviderError } from '../../src/ai/completion/provider-error.js';
import type { TokenUsage } from '../../src/ai/completion/completion.js';
import { BadGatewayError, ServiceError, TooManyRequestsError } from '../../src/lib/errors.js';
import { optionalBearer } from '../auth/optional-bearer.js';
import { passedOnBody } from '../http/body-format.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { eventStream, wantsEvents, type ServerEvent } from '../http/sse.js';
import { AI_CALLS_AT_ONCE, aiCallLimit } from '../openai/limits.js';
import { callOf } from '../openai/complete.js';
import { presentUsage } from '../views/token-usage.js';
import { aiEntitlement } from './ai-entitlement.js';
import { callerAi } from './caller-ai.js';
import { chatAnswer, chatBody } from './ai-schemas.js';
import type { BackendDependencies } from './dependencies.js';

const PATH = '/api/ai/chat';

/** Creates `POST /api/ai/chat` (spec 4.8). */
export function aiChatEndpoints({ ai, settings }: BackendDependencies) {
  return [
    endpoint({
      method: 'POST',
      path: PATH,
      operationId: 'completeChat',
      summary: 'Complete a chat; streams server-sent events on request',
      tag: 'AI',
      auth: optionalBearer,
      keyScope: 'ai',
      headers: z.object({ accept: z.string().optional() }),
      body: passedOnBody(chatBody),
      limitOfCaller: aiCallLimit(settings.http),
      atOnce: AI_CALLS_AT_ONCE,
      responses: { 200: [chatAnswer, 'stream'] },
      errors: [402, 403, 404, 503],
      async handler({ body, caller, headers, signal }) {
        const entitlement = aiEntitlement(caller, settings.accounts.adminEmails);
        const { model, taskType: task, stream, ...request } = body;
        const { ownKeys, router } = callerAi(ai, caller);
        const streamed = stream === true || wantsEvents(headers);
        const call = callOf({
          entitlement,
          agentId: null,
          endpoint: PATH,
          ownKeys,
          route: router.for({ model, task }, entitlement.plan),
          request: streamed ? { ...request, stream: true } : request,
          signal,
        });
        try {
          if (streamed) {
            const streaming = await ai.completions.stream(call);
            return eventStream(chatEvents(call, streaming, entitlement));
          }
          const answered = await ai.completions.answer(call);
          const { completion, usage } = answered;
          return reply(200, present(call, answered, completion.content, usage, entitlement));
        } catch (error) {
          throw error instanceof NoAnswerError ? chatRefusal(error, entitlement) : error;
        }
      },
    }),
  ];
}

/** Maps a failure to a status of the contract, which has no 502 here. */
function chatRefusal({ refusal, attempts }: NoAnswerError, { isAdmin }: Entitlement): ServiceError {
  const { cause, code, facts, message } = refusal;
  const details = isAdmin ? { ...facts, attempts } : facts;
  if (refusal instanceof TooManyRequestsError) {
    return new TooManyRequestsError(message, refusal.limit, code, details);
  }
  const status = refusal instanceof BadGatewayError ? 500 : refusal.status;
  return new ServiceError(status, message, code, details, { cause });
}

const chunk = z.object({
  choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }).optional() })),
});

async function* chatEvents(
  call: Call,
  streaming: Streaming,
  entitlement: Entitlement,
): AsyncGenerator<ServerEvent> {
  let content = '';
  try {
    for await (const data of streaming.chunks) {
      const piece = chunk.safeParse(JSON.parse(data)).data?.choices[0]?.delta?.content;
      if (!piece) continue;
      content += piece;
      yield { event: 'delta', data: { content: piece } };
    }
    yield {
      event: 'done',
      data: present(call, streaming, content, streaming.usage(), entitlement),
    };
  } catch (error) {
    // The status is already sent, so an error can only be reported as an event.
    if (!(error instanceof ProviderError)) throw error;
    yield { event: 'error', data: { error: 'The answer was interrupted: retry' } };
  }
}

function present(
  { callId }: Call,
  { model, provider, attempts }: Served,
  content: string,
  usage: TokenUsage,
  { isAdmin }: Entitlement,
): z.infer<typeof chatAnswer> {
  return {
    id: callId,
    model,
    provider,
    message: { role: 'assistant', content },
    usage: presentUsage(usage),
    timestamp: new Date().toISOString(),
    ...(isAdmin && { attempts: [...attempts] }),
  };
}
