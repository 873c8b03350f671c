import * as z from 'zod';

const header = (description: string) => z.string().optional().describe(description);

/** Headers that sign an event of a provider; `ProviderWebhook` reads and refuses them. */
export const webhookHeaders = z.object({
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
export const webhookAnswer = z
  .strictObject({
    received: z.literal(true),
    handled: z.boolean().describe('Whether the event was stored'),
    reason: reason.optional(),
  })
  .meta({ id: 'ReceivedEvent' });

/** Returns the answer to an event that was stored, or had no effect for a reason. */
export const receivedEvent = (refusal?: z.output<typeof reason>) =>
  ({
    received: true,
    handled: refusal === undefined,
    ...(refusal !== undefined && { reason: refusal }),
  }) as const;
