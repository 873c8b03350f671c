import { literal } from 'sequelize';
import type { ProviderWebhookKind } from '../../../types/provider-webhooks.js';
import { PLATFORM } from '../schema/policies.js';
import { index, key, table, text, timestamp, withDefault } from '../schema/table.js';

/** Events of providers that were stored, so that a repetition is recognized. */
export const providerWebhooks = table(
  'provider_webhooks',
  {
    kind: key(text<ProviderWebhookKind>()),
    /** The provider's id of the event. */
    id: key(text()),
    receivedAt: withDefault(timestamp(), literal('now()')),
  },
  [index('provider_webhooks_received', ['received_at'])],
  PLATFORM,
);
