import type { WebDependencies } from './dependencies.js';
import { providerWebhook } from './provider-webhook.js';

/** Creates `POST /api/webhooks/email` (spec 4.15). */
export const emailWebhookEndpoints = ({ emailEvents }: Pick<WebDependencies, 'emailEvents'>) => [
  providerWebhook(emailEvents, {
    tag: 'E-mail',
    path: '/api/webhooks/email',
    operationId: 'receiveEmailEvent',
    summary: 'Report an event of the e-mail provider; its signature authenticates it',
  }),
];
