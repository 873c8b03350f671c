import * as z from 'zod';
import { prepared } from '../../src/bus/bus-message.js';
import { getMessage, redeliver } from '../../src/bus/bus-messages.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import { requestOwner } from '../../src/platform/http/client-networks.js';
import { anonymous } from '../auth/anonymous.js';
import { bearer } from '../auth/bearer.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import {
  message,
  messageBody,
  messageId,
  messageParts,
  presentMessage,
  sentMessage,
  shownMessage,
} from '../views/bus.js';
import type { BackendDependencies } from './dependencies.js';
import { BUS_CALLER_LIMIT, BUS_LIMIT } from './limits.js';
import { requestedBy } from './requested-by.js';

const WEBHOOK = '/api/underground/webhooks/:agentId';
const MESSAGE = '/api/underground/bus/messages/:messageId';

const agentId = z.string().min(1).max(256);
const ofAgent = z.object({ agentId: agentId.describe('The agent that receives the message') });
const ofMessage = z.object({ messageId: messageId.describe("The message's own id") });
const senderQuery = z.object({
  from: agentId.optional().describe('The sender; required only if two senders used the same id'),
});

const url = z.string().min(1).max(2_048);
const refuses = z.array(agentId).max(100);

const bus = area({
  tag: 'Bus',
  auth: bearer,
  keyScope: 'agents',
  limitOfCaller: BUS_CALLER_LIMIT,
});

/** Creates the endpoints of the bus (spec 4.10). */
export function busEndpoints({ bus: entrance, busSignatures, busWebhooks }: BackendDependencies) {
  return [
    area({ tag: 'Bus', auth: anonymous })({
      method: 'POST',
      path: '/api/underground/bus/send',
      operationId: 'sendBusMessage',
      summary: 'Send a signed message to an agent',
      limit: BUS_LIMIT,
      body: messageBody(z.strictObject({ ...message, signature: z.string() })),
      responses: { 200: sentMessage },
      errors: [401, 402, 404, 409, 503],
      async handler({ body: { signature, ...sent }, clientAddress }) {
        await entrance.send(sent, signature, requestOwner(undefined, clientAddress));
        return reply(200, { success: true, messageId: sent.messageId });
      },
    }),
    bus({
      method: 'POST',
      path: '/api/underground/bus/sign',
      operationId: 'signBusMessage',
      summary: "Sign a message by an agent's wallet, whose key the platform keeps",
      body: messageBody(
        z.strictObject({
          agentId,
          message: z.strictObject({
            ...messageParts,
            from: agentId.optional(),
            timestamp: message.timestamp,
          }),
        }),
      ),
      responses: {
        200: z.strictObject({ ...message, messageId: z.string(), signature: z.string() }),
      },
      errors: [404, 409, 503],
      async handler({ body, signal, tenant }) {
        const { userId } = await getAgent(tenant, body.agentId);
        const unsigned = { ...body.message, from: body.agentId };
        const owner = { userId, agentId: body.agentId };
        const signature = await busSignatures.sign(owner, prepared(unsigned), signal);
        return reply(200, { ...unsigned, signature });
      },
    }),
    bus({
      method: 'GET',
      path: MESSAGE,
      operationId: 'getBusMessage',
      summary: 'Get a message that an agent of yours sent or received, with its attempts',
      params: ofMessage,
      query: senderQuery,
      responses: { 200: shownMessage },
      errors: [404],
      async handler({ params, query, tenant }) {
        const found = await getMessage(tenant, { ...params, ...query });
        return reply(200, presentMessage(found));
      },
    }),
    bus({
      method: 'POST',
      path: `${MESSAGE}/redeliver`,
      operationId: 'redeliverBusMessage',
      summary: 'Deliver a message again',
      params: ofMessage,
      query: senderQuery,
      responses: { 202: z.strictObject({ messageId: z.string(), status: z.literal('queued') }) },
      errors: [404, 409],
      async handler({ params, query, tenant }) {
        await redeliver(tenant, { ...params, ...query });
        return reply(202, { messageId: params.messageId, status: 'queued' });
      },
    }),
    bus({
      method: 'PUT',
      path: WEBHOOK,
      operationId: 'putBusWebhook',
      summary: "Set an agent's webhook, with a new secret that is shown once",
      params: ofAgent,
      body: z.strictObject({
        url: url.describe('http or https, at a public address'),
        refuses: refuses.default([]).describe('Agents and owners whose messages are refused'),
      }),
      responses: {
        200: z.strictObject({
          agentId: z.string(),
          url: z.string(),
          refuses: z.array(z.string()),
          secret: z.string().describe('Key of the signatures in `X-Bus-Signature`'),
        }),
      },
      errors: [404],
      async handler(request) {
        const { params } = request;
        const put = await busWebhooks.put(requestedBy(request), params.agentId, request.body);
        return reply(200, { agentId: params.agentId, ...put });
      },
    }),
    bus({
      method: 'GET',
      path: WEBHOOK,
      operationId: 'getBusWebhook',
      summary: "Get an agent's webhook",
      params: ofAgent,
      responses: {
        200: z.strictObject({
          agentId: z.string(),
          url: z.string(),
          refuses: z.array(z.string()),
          pausedAt: z.iso
            .datetime()
            .nullable()
            .describe('Set after 20 dead letters in a row: set the webhook again to resume'),
        }),
      },
      errors: [404],
      async handler({ params, tenant }) {
        const { pausedAt, ...found } = await busWebhooks.get(tenant, params.agentId);
        const shown = { ...found, pausedAt: pausedAt?.toISOString() ?? null };
        return reply(200, { agentId: params.agentId, ...shown });
      },
    }),
    bus({
      method: 'DELETE',
      path: WEBHOOK,
      operationId: 'deleteBusWebhook',
      summary: "Remove an agent's webhook: its messages wait for a new webhook",
      params: ofAgent,
      responses: { 200: z.strictObject({ success: z.literal(true) }) },
      errors: [404],
      async handler(request) {
        await busWebhooks.remove(requestedBy(request), request.params.agentId);
        return reply(200, { success: true });
      },
    }),
  ];
}
