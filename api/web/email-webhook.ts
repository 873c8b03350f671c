import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { rawBody } from '../http/body-format.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { receivedEvent, webhookAnswer, webhookHeaders } from './provider-webhook.js';

/** Creates `POST /api/webhooks/email` (spec 4.15). */
export function emailWebhookEndpoints({ emailEvents }: WebDependencies) {
  return [
    area({ tag: 'E-mail', auth: anonymous })({
      method: 'POST',
      path: '/api/webhooks/email',
      operationId: 'receiveEmailEvent',
      summary: 'Report an event of the e-mail provider; its signature authenticates it',
      headers: webhookHeaders,
      body: rawBody('application/json'),
      limit: LIMITS.providerEvents,
      responses: { 200: webhookAnswer },
      errors: [503],
      async handler({ body, headers }) {
        return reply(200, receivedEvent(await emailEvents.receive(body, headers)));
      },
    }),
  ];
}
