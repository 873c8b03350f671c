import * as z from 'zod';
import { entitled } from '../../src/accounts/accounts/entitlement.js';
import type { Question } from '../../src/agents/chat/chats.js';
import type { TurnEvent } from '../../src/agents/chat/turn.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { ServiceError } from '../../src/lib/errors.js';
import { AnswerDroppedError } from '../../src/platform/idempotency/idempotency-store.js';
import type { Person } from '../auth/session.js';
import type { EndpointRequest } from '../http/endpoint.js';
import { conversationName } from '../views/messages.js';
import { reply } from '../http/reply.js';
import { eventStream, wantsEvents, type ServerEvent } from '../http/sse.js';
import type { WebDependencies } from './dependencies.js';

const MAX_MESSAGE_LENGTH = 100_000;

export const chatQuestion = {
  agentId: z.string().max(64),
  message: z.string().min(1).max(MAX_MESSAGE_LENGTH),
  conversation: conversationName.optional(),
  stream: z
    .boolean()
    .optional()
    .describe('true for server-sent events, as with `Accept: text/event-stream`'),
};

type ChatQuestion = z.infer<z.ZodObject<typeof chatQuestion>>;

export const chatAnswer = z
  .strictObject({
    agentId: z.string(),
    conversation: z.string(),
    message: z.strictObject({
      id: z.string(),
      role: z.literal('assistant'),
      content: z.string(),
      createdAt: z.iso.datetime(),
    }),
  })
  .meta({ id: 'ChatAnswer' });

type Answer = Extract<TurnEvent, { kind: 'done' }>;

/** The user who sends the message. */
export interface ChatCaller {
  readonly user: Pick<Person['user'], 'id' | 'isAdmin'>;
  readonly plan: Person['plan'];
}

export interface ChatRequest extends Pick<EndpointRequest, 'isAnswered' | 'markAnswered'> {
  readonly caller: ChatCaller;
  readonly headers: { readonly accept?: string | undefined };
  readonly idempotencyId: string;
  readonly signal: AbortSignal;
  readonly tenant: TenantDatabase;
}

/**
 * Answers a message in one piece or as server-sent events. Messages have the answer, so only a mark is stored for an
 * `Idempotency-Key`. @throws PaymentRequiredError without a plan, AnswerDroppedError
 */
export async function answerChat(
  dependencies: ChatParts,
  request: ChatRequest,
  { agentId, conversation, message, stream }: ChatQuestion,
) {
  const turn = await turnOf(dependencies, request, { agentId, conversation, message });
  if (stream ?? wantsEvents(request.headers)) {
    return eventStream(serverEvents(turn, agentId, request));
  }
  const answer = await lastOf(turn);
  if (answer.isStored) await request.markAnswered?.();
  return reply(200, presentAnswer(answer.message, agentId));
}

type Turn = AsyncIterable<TurnEvent> | Iterable<TurnEvent>;

type ChatParts = Pick<WebDependencies, 'chats'>;

async function turnOf(
  { chats }: ChatParts,
  { caller: { plan, user }, idempotencyId: requestId, isAnswered, signal, tenant }: ChatRequest,
  question: Question,
): Promise<Turn> {
  if (!isAnswered) {
    const owner = entitled(user.id, user.isAdmin, plan);
    return chats.ask(tenant, { ...question, plan: owner.plan, requestId }, signal);
  }
  const again = await chats.again(tenant, { ...question, requestId });
  if (!again) throw new AnswerDroppedError();
  return again;
}

async function lastOf(turn: Turn): Promise<Answer> {
  for await (const event of turn) if (event.kind === 'done') return event;
  throw new TypeError('a turn must end with its message');
}

async function* serverEvents(
  turn: Turn,
  agentId: string,
  { markAnswered }: Pick<ChatRequest, 'markAnswered'>,
): AsyncGenerator<ServerEvent> {
  try {
    for await (const event of turn) {
      if (event.kind === 'delta') yield { event: 'delta', data: { content: event.content } };
      else {
        // Without the mark a repetition finds the answer as long as messages have it.
        if (event.isStored) await markAnswered?.().catch(() => undefined);
        yield { event: 'done', data: presentAnswer(event.message, agentId) };
      }
    }
  } catch (error) {
    // The status is already sent, so an error can only be reported as an event.
    if (!(error instanceof ServiceError)) throw error;
    yield { event: 'error', data: { error: error.message } };
  }
}

function presentAnswer(message: Answer['message'], agentId: string): z.infer<typeof chatAnswer> {
  const { id, conversation, content, createdAt } = message;
  return {
    agentId,
    conversation,
    message: { id, role: 'assistant', content, createdAt: createdAt.toISOString() },
  };
}
