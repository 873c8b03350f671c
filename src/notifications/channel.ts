import type { NotificationChannelName } from '../platform/database/models.js';

/** A service that delivers messages to operators. */
export interface NotificationChannel {
  readonly name: NotificationChannelName;
  /** Sends one message, truncated to the service's limit. @throws ChannelError */
  send(text: string): Promise<void>;
}

/** An error: the service did not accept a message. The text names the channel but not its secret address. */
export class ChannelError extends Error {
  override readonly name = 'ChannelError';

  constructor(
    channel: NotificationChannelName,
    what: string,
    /** Milliseconds until another attempt may succeed; undefined for a permanent failure. */
    readonly retryAfterMs: number | undefined,
  ) {
    super(`${channel} ${what}`);
  }
}

/** Milliseconds before a failed service is retried. */
const UNAVAILABLE_MS = 60_000;

/** Makes an error for a service that failed or did not confirm the message. */
export function unavailable(channel: NotificationChannelName, what: string): ChannelError {
  return new ChannelError(channel, what, UNAVAILABLE_MS);
}

/** Makes an error from a status: a rate limit, a fault of the service, or a refusal. */
export function refusal(
  channel: NotificationChannelName,
  status: number,
  limitedForMs: number,
): ChannelError {
  if (status === 429) {
    const seconds = Math.ceil(limitedForMs / 1_000);
    return new ChannelError(channel, `rate limited for another ${seconds} s`, limitedForMs);
  }
  if (status < 300 || status >= 500) return unavailable(channel, `answered with ${status}`);
  return new ChannelError(channel, `refused the message with status ${status}`, undefined);
}
