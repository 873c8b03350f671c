import type { NotificationChannelName } from '../database/models.js';

/** A service that carries messages to operators. */
export interface NotificationChannel {
  readonly name: NotificationChannelName;
  /**
   * Sends one message, cut to what the service takes.
   *
   * @throws ChannelLimitedError, ChannelUnavailableError, MessageRefusedError; none of them says
   *   more of the address than the channel's name.
   */
  send(text: string): Promise<void>;
}

/** The service did not take the message, or nobody heard it say so; another attempt may succeed. */
export class ChannelUnavailableError extends Error {
  constructor(channel: NotificationChannelName, what: string) {
    super(`${channel} ${what}`);
    this.name = 'ChannelUnavailableError';
  }
}

/** The service wants fewer messages. */
export class ChannelLimitedError extends Error {
  constructor(
    channel: NotificationChannelName,
    /** Milliseconds until it takes one again. */
    readonly retryAfterMs: number,
  ) {
    super(`${channel} takes no message for another ${Math.ceil(retryAfterMs / 1_000)} s`);
    this.name = 'ChannelLimitedError';
  }
}

/** The service refuses the message, its key or its addressee: another attempt would not help. */
export class MessageRefusedError extends Error {
  constructor(channel: NotificationChannelName, status: number) {
    super(`${channel} refused the message with ${status}`);
    this.name = 'MessageRefusedError';
  }
}
