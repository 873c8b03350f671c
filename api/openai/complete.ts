import { randomUUID } from 'node:crypto';
import type { Entitlement } from '../../src/accounts/accounts/entitlement.js';
import type { ChatBody } from '../../src/ai/completion/completion.js';
import type { Call, Completions } from '../../src/ai/routing/completions.js';
import { NoAnswerError } from '../../src/ai/routing/no-answer-error.js';
import { ProviderError } from '../../src/ai/completion/provider-error.js';
import type { OwnKeys } from '../../src/ai/own-keys/own-keys.js';
import type { Route } from '../../src/ai/routing/route.js';
import { supportedRequest } from '../../src/ai/routing/supported-request.js';
import { streamReply, type StreamReply } from '../http/reply.js';
import { eventStream, type ServerEvent } from '../http/sse.js';
import type { CompletionBody } from './completion-schemas.js';

export interface CompletionRequest {
  readonly entitlement: Entitlement;
  readonly agentId: string | null;
  readonly endpoint: string;
  readonly ownKeys?: OwnKeys;
  readonly route: Route;
  readonly request: ChatBody;
  readonly signal: AbortSignal;
}

export function callOf({ entitlement, ...order }: CompletionRequest): Call {
  const { userId, plan, isAdmin } = entitlement;
  return { ...order, callId: randomUUID(), userId, plan: isAdmin ? undefined : plan };
}

/** Returns the provider request for a body. @throws UnsupportedError for an unsupported parameter. */
export function requestOf({ model: _model, stream, ...rest }: CompletionBody): ChatBody {
  // A null parameter means that it is unset.
  const { max_tokens: most, max_completion_tokens: mostCompletion, ...others } = rest;
  const request = supportedRequest(others);
  return {
    ...request,
    ...(stream === true && { stream }),
    ...(typeof most === 'number' && { max_tokens: most }),
    ...(typeof mostCompletion === 'number' && { max_completion_tokens: mostCompletion }),
  };
}

/** Answers with the provider's answer unchanged, or its chunks as a stream. @throws ServiceError */
export async function complete(
  completions: Completions,
  order: CompletionRequest,
): Promise<StreamReply<200>> {
  const call = { ...callOf(order), countsTools: true };
  try {
    if (call.request.stream === true) {
      const { chunks } = await completions.stream(call);
      return eventStream(openAiEvents(chunks));
    }
    const { completion } = await completions.answer(call);
    return streamReply(200, completion.json, 'application/json; charset=utf-8');
  } catch (error) {
    throw error instanceof NoAnswerError ? error.refusal : error;
  }
}

async function* openAiEvents(chunks: AsyncGenerator<string>): AsyncGenerator<ServerEvent> {
  try {
    for await (const data of chunks) yield { data };
    yield { data: '[DONE]' };
  } catch (error) {
    // The status is already sent, so an error can only be reported as an event.
    if (!(error instanceof ProviderError)) throw error;
    yield {
      data: { error: { message: 'The answer was interrupted: retry', type: error.failure } },
    };
  }
}
