import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { readGatewayToken } from '../../src/agents/agent-secrets.js';
import { getAgent } from '../../src/agents/agents.js';
import { requireProvider } from '../../src/ai/route.js';
import { listMessages } from '../../src/chat/messages.js';
import { chatTurn, portOf, type TurnEvent } from '../../src/chat/turn.js';
import type { MessageRow } from '../../src/database/models.js';
import { ServiceError } from '../../src/errors.js';
import { endpoint } from '../http/endpoint.js';
import {
  conversationName,
  messageItem,
  messagesQuery,
  presentMessage,
} from '../http/message-schemas.js';
import { reply } from '../http/reply.js';
import { eventStream, type ServerEvent } from '../http/sse.js';
import type { WebDependencies } from './dependencies.js';

const MAX_MESSAGE_LENGTH = 100_000;

const answer = z.strictObject({
  agentId: z.string(),
  conversation: z.string(),
  message: z.strictObject({
    id: z.string(),
    role: z.literal('assistant'),
    content: z.string(),
    createdAt: z.iso.datetime(),
  }),
});

/** `GET|POST /api/chat` (decision 18). */
export function chatEndpoints({ config, secrets }: WebDependencies) {
  return [
    endpoint({
      method: 'GET',
      path: '/api/chat',
      summary: 'What was said to and by an agent, oldest first',
      tag: 'Chat',
      auth: 'session',
      query: z.object({ agentId: z.string().max(64), ...messagesQuery }),
      responses: { 200: z.strictObject({ messages: z.array(messageItem) }) },
      errors: [404],
      async handler({ query: { agentId, ...page }, tenant }) {
        const agent = await getAgent(tenant, agentId);
        const messages = await listMessages(tenant, agent.id, page);
        return reply(200, { messages: messages.map(presentMessage) });
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/chat',
      summary: 'Ask an agent; as server-sent events when asked for',
      tag: 'Chat',
      auth: 'session',
      headers: z.object({ accept: z.string().optional() }),
      body: z.object({
        agentId: z.string().max(64),
        message: z.string().min(1).max(MAX_MESSAGE_LENGTH),
        conversation: conversationName.optional(),
      }),
      responses: { 200: [answer, 'stream'] },
      errors: [404, 409, 502, 503],
      async handler({ body, headers, signal, tenant }) {
        const agent = await getAgent(tenant, body.agentId);
        const port = portOf(agent, config.agentHost);
        // Asked for its error alone: without a provider the agent could only fail.
        requireProvider(config.providers, config.aiProvider);
        const token = await readGatewayToken(tenant, secrets, agent.id);
        const conversation = body.conversation ?? randomUUID();
        const question = { message: body.message, conversation };
        const turn = chatTurn(tenant, agent, { port, token }, question, signal);
        if (headers.accept?.includes('text/event-stream')) {
          return eventStream(serverEvents(turn, agent.id));
        }
        return reply(200, presentAnswer(await lastOf(turn), agent.id));
      },
    }),
  ];
}

async function lastOf(turn: AsyncIterable<TurnEvent>): Promise<MessageRow> {
  for await (const event of turn) if (event.kind === 'done') return event.message;
  throw new TypeError('a turn ends with its message');
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
    // The status has been sent: what went wrong can only be told as an event.
    if (!(error instanceof ServiceError)) throw error;
    yield { event: 'error', data: { error: error.message } };
  }
}

function presentAnswer(message: MessageRow, agentId: string): z.infer<typeof answer> {
  const { id, conversation, content, createdAt } = message;
  return {
    agentId,
    conversation,
    message: { id, role: 'assistant', content, createdAt: createdAt.toISOString() },
  };
}
