import * as z from 'zod';
import type { WebhookHeaders } from '../../src/platform/webhooks/provider-webhook.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { rawBody } from '../http/body-format.js';
import { reply } from '../http/reply.js';
import { LIMITS } from './limits.js';

const header = (description: string) => z.string().optional().describe(description);

/** Headers that sign an event of a provider; `ProviderWebhook` reads and refuses them. */
const webhookHeaders = z.object({
  'webhook-id': header("The event's id"),
  'webhook-timestamp': header('Seconds since 1970'),
  'webhook-signature': header('Signatures by Standard Webhooks'),
  'svix-id': header('As `webhook-id`'),
  'svix-timestamp': header('As `webhook-timestamp`'),
  'svix-signature': header('As `webhook-signature`'),
});

/** Reasons why an event had no effect. A refused sender gets no error: providers disable endpoints that answer errors. */
const reason = z.enum(['duplicate', 'unknown', 'event', 'sender', 'recipient', 'rate']);

/** The answer to an event of a provider whose signature is valid. */
const webhookAnswer = z
  .strictObject({
    received: z.literal(true),
    handled: z.boolean().describe('Whether the event was stored'),
    reason: reason.optional(),
  })
  .meta({ id: 'ReceivedEvent' });

/** Returns the answer to an event that was stored, or had no effect for a reason. */
const receivedEvent = (refusal?: z.output<typeof reason>) =>
  ({
    received: true,
    handled: refusal === undefined,
    ...(refusal !== undefined && { reason: refusal }),
  }) as const;

interface ProviderEvents {
  /** Verifies an event and stores what it says, or returns why it has no effect. */
  receive(body: Buffer, headers: WebhookHeaders): Promise<z.output<typeof reason> | undefined>;
}

/** Creates the endpoint of a provider's webhook (spec 4.15). */
export const providerWebhook = (
  events: ProviderEvents,
  declared: {
    readonly path: string;
    readonly tag: string;
    readonly operationId: string;
    readonly summary: string;
  },
) => {
  const { tag, ...named } = declared;
  return area({ tag, auth: anonymous })({
    ...named,
    method: 'POST',
    headers: webhookHeaders,
    body: rawBody('application/json'),
    limit: LIMITS.providerEvents,
    responses: { 200: webhookAnswer },
    errors: [503],
    async handler({ body, headers }) {
      return reply(200, receivedEvent(await events.receive(body, headers)));
    },
  });
};
