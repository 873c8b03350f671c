import * as z from 'zod';
import { entitled } from '../../src/accounts/accounts/entitlement.js';
import type { Question } from '../../src/agents/chat/chats.js';
import type { TurnEvent } from '../../src/agents/chat/turn.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { ServiceError } from '../../src/lib/errors.js';
import type { Person } from '../auth/session.js';
import { conversationName } from '../views/messages.js';
import { reply } from '../http/reply.js';
import { eventStream, wantsEvents, type ServerEvent } from '../http/sse.js';
import type { WebDependencies } from './dependencies.js';

const MAX_MESSAGE_LENGTH = 100_000;

export const chatQuestion = {
  agentId: z.string().max(64),
  message: z.string().min(1).max(MAX_MESSAGE_LENGTH),
  conversation: conversationName.optional(),
};

export const chatAnswer = z.strictObject({
  agentId: z.string(),
  conversation: z.string(),
  message: z.strictObject({
    id: z.string(),
    role: z.literal('assistant'),
    content: z.string(),
    createdAt: z.iso.datetime(),
  }),
});

type Told = Extract<TurnEvent, { kind: 'done' }>['message'];

interface Asked {
  readonly caller: Person;
  readonly headers: { readonly accept?: string | undefined };
  readonly idempotencyId: string;
  readonly signal: AbortSignal;
  readonly tenant: TenantDatabase;
}

/** Answers a message at once or as server-sent events. @throws PaymentRequiredError without a plan */
export async function answerChat(
  { chats }: Pick<WebDependencies, 'chats'>,
  { caller: { plan, user }, headers, idempotencyId, signal, tenant }: Asked,
  asked: Question,
) {
  entitled(user.id, user.isAdmin, plan);
  const turn = await chats.ask(tenant, { ...asked, requestId: idempotencyId }, signal);
  if (wantsEvents(headers)) {
    return eventStream(serverEvents(turn, asked.agentId));
  }
  return reply(200, presentAnswer(await lastOf(turn), asked.agentId));
}

async function lastOf(turn: AsyncIterable<TurnEvent>): Promise<Told> {
  for await (const event of turn) if (event.kind === 'done') return event.message;
  throw new TypeError('a turn must end with its message');
}

async function* serverEvents(
  turn: AsyncIterable<TurnEvent>,
  agentId: string,
): AsyncGenerator<ServerEvent> {
  try {
    for await (const event of turn) {
      if (event.kind === 'delta') yield { event: 'delta', data: { content: event.content } };
      else yield { event: 'done', data: presentAnswer(event.message, agentId) };
    }
  } catch (error) {
    // The status is already sent, so an error can only be reported as an event.
    if (!(error instanceof ServiceError)) throw error;
    yield { event: 'error', data: { error: error.message } };
  }
}

function presentAnswer(message: Told, agentId: string): z.infer<typeof chatAnswer> {
  const { id, conversation, content, createdAt } = message;
  return {
    agentId,
    conversation,
    message: { id, role: 'assistant', content, createdAt: createdAt.toISOString() },
  };
}
