import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import type { AgentAiServices } from '../../src/agent-ai-services.js';
import { prepared } from '../../src/bus/bus-message.js';
import { agentToken } from '../auth/agent-token.js';
import { area } from '../http/area.js';
import { wholeNumber } from '../http/pagination.js';
import type { RateLimit } from '../http/rate-limit.js';
import { reply } from '../http/reply.js';
import { messageBody, messageId, messageParts, sentMessage } from '../views/bus.js';

const PATH = '/v1/bus/messages';

/** Rate limit of an agent's requests to the bus. */
const LIMIT: RateLimit = {
  name: 'bus-of-agent',
  max: 120,
  windowMs: 60_000,
  message: 'Too many requests, please slow down.',
};

const agentBus = area({ tag: 'Bus', auth: agentToken, limitOfCaller: LIMIT });

/** The largest id of a row. */
const LAST_ID = 2n ** 63n - 1n;

const position = z.string().refine((text) => /^\d{1,19}$/.test(text) && BigInt(text) <= LAST_ID);

const received = z.strictObject({
  id: z.string(),
  messageId: z.string(),
  action: z.string(),
  from: z.string(),
  payload: z.looseObject({}),
  createdAt: z.iso.datetime(),
});

/** Creates the endpoints by which agents send and fetch messages without a webhook. */
export function agentBusEndpoints({
  busAcceptance,
  busInbox,
  busSignatures,
}: Pick<AgentAiServices, 'busAcceptance' | 'busInbox' | 'busSignatures'>) {
  return [
    agentBus({
      method: 'POST',
      path: PATH,
      operationId: 'sendAgentMessage',
      summary: "Send a message, signed by the agent's wallet that the platform keeps",
      body: messageBody(z.strictObject({ ...messageParts, messageId: messageId.optional() })),
      responses: { 200: sentMessage },
      errors: [402, 404, 409, 503],
      async handler({ body, caller, signal }) {
        const { agentId, userId } = caller;
        const ready = prepared({
          ...body,
          messageId: body.messageId ?? randomUUID(),
          from: agentId,
          timestamp: Math.floor(Date.now() / 1_000),
        });
        // The signature proves that the agent has a wallet here; the bus need not check it again.
        await busSignatures.sign({ agentId, userId }, ready, signal);
        await busAcceptance.accept(ready, caller);
        return reply(200, { success: true, messageId: ready.message.messageId });
      },
    }),
    agentBus({
      method: 'GET',
      path: PATH,
      operationId: 'listAgentMessages',
      summary: 'List the messages for the agent, oldest first',
      query: z.object({
        after: position
          .default('0')
          .describe(
            'Id of the last message that the agent has received; messages up to this id count as delivered',
          ),
        limit: wholeNumber('limit', { most: 50, usual: 50 }).describe('Maximum number of messages'),
      }),
      responses: {
        200: z.strictObject({
          messages: z.array(received),
          next: z.string().describe('Value of `after` for the next request'),
        }),
      },
      async handler({ caller, query }) {
        const { messages, next } = await busInbox.read(caller.agentId, query);
        const shown = messages.map(({ createdAt, ...message }) => ({
          ...message,
          createdAt: createdAt.toISOString(),
        }));
        return reply(200, { messages: shown, next });
      },
    }),
  ];
}
