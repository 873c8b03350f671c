/** Providers that report events by webhooks. */
export type ProviderWebhookKind = 'video' | 'email';
