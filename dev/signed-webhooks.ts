import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';

/** Milliseconds between two deliveries of an event, and the most deliveries. */
const RETRY_MS = 1_000;
const MAX_DELIVERIES = 60;

const CALL_TIMEOUT_MS = 10_000;

/** Headers and body of an event's delivery. */
export interface SignedEvent {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Signs an event by Standard Webhooks; `prefix` is `webhook` or `svix`. */
export function signedEvent(
  secret: string,
  event: unknown,
  { at = new Date(), id = `msg_${randomUUID()}`, prefix = 'webhook' } = {},
): SignedEvent {
  const body = JSON.stringify(event);
  const headers = {
    'content-type': 'application/json',
    [`${prefix}-id`]: id,
    [`${prefix}-timestamp`]: String(Math.floor(at.getTime() / 1_000)),
    [`${prefix}-signature`]: new Webhook(secret).sign(id, at, body),
  };
  return { headers, body };
}

/** Delivers an event to a webhook, again until the webhook accepts the event or the signal aborts. */
export async function deliverEvent(
  url: string,
  sent: SignedEvent,
  closing: AbortSignal,
): Promise<void> {
  for (let n = 0; n < MAX_DELIVERIES && !closing.aborted; n++) {
    try {
      const signal = AbortSignal.any([closing, AbortSignal.timeout(CALL_TIMEOUT_MS)]);
      const answer = await fetch(url, { method: 'POST', signal, ...sent });
      await answer.body?.cancel();
      if (answer.ok) return;
    } catch {
      // The platform is being restarted: the next attempt may reach it.
    }
    await delay(RETRY_MS, undefined, { signal: closing }).catch(() => undefined);
  }
}
