import type { NotificationChannelName } from '../platform/database/models.js';

/** A service that carries messages to operators. */
export interface NotificationChannel {
  readonly name: NotificationChannelName;
  /**
   * Sends one message, cut to what the service takes.
   *
   * @throws ChannelError
   */
  send(text: string): Promise<void>;
}

/** The service did not take a message. Says no more of the address than the channel's name. */
export class ChannelError extends Error {
  constructor(
    channel: NotificationChannelName,
    what: string,
    /** Milliseconds until another attempt may succeed; undefined where none would. */
    readonly retryAfterMs: number | undefined,
  ) {
    super(`${channel} ${what}`);
    this.name = 'ChannelError';
  }
}

/** How soon a service that failed is tried again; so none is tried more than once a minute. */
const UNAVAILABLE_MS = 60_000;

/** It did not take the message, or nobody heard it say so. */
export function unavailable(channel: NotificationChannelName, what: string): ChannelError {
  return new ChannelError(channel, what, UNAVAILABLE_MS);
}

/**
 * What a status says that is no success: it wants fewer messages, has a fault of its own, or refuses
 * the message, its key or its addressee.
 */
export function refusal(
  channel: NotificationChannelName,
  status: number,
  limitedForMs: number,
): ChannelError {
  if (status === 429) {
    const seconds = Math.ceil(limitedForMs / 1_000);
    return new ChannelError(channel, `takes no message for another ${seconds} s`, limitedForMs);
  }
  if (status < 300 || status >= 500) return unavailable(channel, `answered with ${status}`);
  return new ChannelError(channel, `refused the message with ${status}`, undefined);
}
