import * as z from 'zod';
import { getAgent } from '../../src/agents/agents/agents.js';
import { listMessages } from '../../src/agents/chat/messages.js';
import { person } from '../auth/person.js';
import { area } from '../http/area.js';
import { messageItem, messagesQuery, presentMessage } from '../views/messages.js';
import { reply } from '../http/reply.js';
import { answerChat, chatAnswer, chatQuestion } from './chat-answer.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const chat = area({
  tag: 'Chat',
  auth: person,
  keyScope: 'agents',
  errors: [404],
  limit: LIMITS.chat,
});

export const sendMessage = chat.declare({
  method: 'POST',
  path: '/api/chat',
  operationId: 'sendMessage',
  summary: 'Send a message to an agent; streams server-sent events on request',
  idempotent: true,
  headers: z.object({ accept: z.string().optional() }),
  body: z.object(chatQuestion),
  responses: { 200: [chatAnswer, 'stream'] },
  errors: [402, 409, 502, 503],
});

/** Creates `GET|POST /api/chat` (decision 18). */
export function chatEndpoints(dependencies: WebDependencies) {
  return [
    chat({
      method: 'GET',
      path: '/api/chat',
      operationId: 'listMessages',
      summary: "List an agent's messages, oldest first",
      query: z.object({ agentId: z.string().max(64).describe('The agent'), ...messagesQuery }),
      responses: { 200: z.strictObject({ messages: z.array(messageItem) }) },
      async handler({ query: { agentId, ...page }, tenant }) {
        const agent = await getAgent(tenant, agentId);
        const messages = await listMessages(tenant, agent.id, page);
        return reply(200, { messages: messages.map(presentMessage) });
      },
    }),
    sendMessage.handledBy((request) => answerChat(dependencies, request, request.body)),
  ];
}
