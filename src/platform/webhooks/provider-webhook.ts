import { Webhook } from 'standardwebhooks';
import { BadRequestError, UnavailableError } from '../../lib/errors.js';
import type { ProviderWebhookKind } from '../../types/provider-webhooks.js';

/** Longest id of an event. */
const MAX_ID = 255;

/** Longest header with signatures: several are sent while a provider changes its secret. */
const MAX_SIGNATURES = 2_048;

/** Headers of an event, by their names in lower case. */
export type WebhookHeaders = Readonly<Record<string, string | undefined>>;

/** An event whose signature is valid. */
export interface ProviderEvent {
  readonly kind: ProviderWebhookKind;
  /** The provider's id, the same in each repetition. */
  readonly eventId: string;
  readonly payload: unknown;
}

export interface ProviderWebhookOptions {
  readonly kind: ProviderWebhookKind;
  /** Valid secrets; undefined if the provider is not configured. */
  readonly secrets: readonly string[] | undefined;
  /** The setting that is missing without secrets. */
  readonly setting: string;
}

/** The webhook of a provider, whose events are signed by Standard Webhooks. */
export class ProviderWebhook {
  readonly #kind: ProviderWebhookKind;
  readonly #setting: string;
  readonly #webhooks: readonly Webhook[] | undefined;

  constructor({ kind, secrets, setting }: ProviderWebhookOptions) {
    this.#kind = kind;
    this.#setting = setting;
    this.#webhooks = secrets?.map((secret) => new Webhook(secret));
  }

  /**
   * Verifies the signature of an event, and returns the parsed event. @throws BadRequestError,
   * UnavailableError
   */
  verify(body: Buffer, headers: WebhookHeaders): ProviderEvent {
    if (!this.#webhooks) {
      throw new UnavailableError(
        `The webhook of ${this.#kind} is not configured: set ${this.#setting}`,
      );
    }
    const signed = signedHeaders(headers);
    if (!signed || !this.#webhooks.some((webhook) => isSigned(webhook, body, signed))) {
      throw new BadRequestError('Invalid signature');
    }
    return { kind: this.#kind, eventId: signed['webhook-id'], payload: payloadOf(body) };
  }
}

/** Returns the headers as Standard Webhooks names them; undefined if one is missing or malformed. */
function signedHeaders(headers: WebhookHeaders) {
  const prefix = headers['webhook-signature'] === undefined ? 'svix' : 'webhook';
  const id = headers[`${prefix}-id`] ?? '';
  const timestamp = headers[`${prefix}-timestamp`] ?? '';
  const signature = headers[`${prefix}-signature`] ?? '';
  // The library reads a number at the beginning of any text.
  if (id === '' || id.length > MAX_ID || !/^\d{1,12}$/.test(timestamp)) return undefined;
  if (signature === '' || signature.length > MAX_SIGNATURES) return undefined;
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signature,
  };
}

function isSigned(
  webhook: Webhook,
  body: Buffer,
  headers: NonNullable<ReturnType<typeof signedHeaders>>,
): boolean {
  try {
    webhook.verify(body, headers, { jsonParse: false });
    return true;
  } catch {
    // The library parses no JSON here, so that every error of it is a refusal.
    return false;
  }
}

function payloadOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new BadRequestError('The event is not valid JSON');
  }
}
