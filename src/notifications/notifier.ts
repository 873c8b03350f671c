import { Op } from 'sequelize';
import type { Database } from '../platform/database/database.js';
import type { NotificationChannelName } from '../platform/database/models.js';
import { ChannelError, type NotificationChannel } from './channel.js';
import { messageOf, platformMessageOf } from './message.js';
import { isPlatformEvent, type Notification } from '../types/notification.js';
import { NotificationLog, type Claim } from './notification-log.js';

export type Delivery = { readonly channel: NotificationChannelName } & (
  | { readonly outcome: 'sent' | 'repeated' }
  /** Call again after the delay. */
  | { readonly outcome: 'waiting'; readonly delayMs: number; readonly reason: string }
  | { readonly outcome: 'dropped'; readonly reason: string }
);

type Message = (missed: number) => string;

/** A notifier of operators that sends events of agents and of the platform through all configured channels. */
export class Notifier {
  readonly #log: NotificationLog;
  /** Claims would wait for each other's database lock; one claim at a time leaves connections to other work. */
  #claimed: Promise<unknown> = Promise.resolve();

  readonly #database: Database;
  readonly #channels: readonly NotificationChannel[];

  constructor(database: Database, channels: readonly NotificationChannel[]) {
    this.#database = database;
    this.#channels = channels;
    this.#log = new NotificationLog(database);
  }

  /** Sends the notification by each channel in its turn, independently; skips removed agents' events. */
  async notify(notification: Notification): Promise<Delivery[]> {
    if (this.#channels.length === 0) return [];
    const message = await this.#messageOf(notification);
    if (!message) return [];
    return Promise.all(
      this.#channels.map((channel) => this.#deliver(notification, message, channel)),
    );
  }

  /** Returns the message, or undefined if the agent was removed. */
  async #messageOf(notification: Notification): Promise<Message | undefined> {
    if (isPlatformEvent(notification)) return (missed) => platformMessageOf(notification, missed);
    const { agentId, userId } = notification.agent;
    const where = { id: agentId, deletedAt: null, desired: { [Op.ne]: 'deleted' as const } };
    const agent = await this.#database
      .asUser(userId)
      .transaction((db) => db.Agent.findOne({ where }));
    if (!agent) return undefined;
    return (missed) => messageOf(notification, agent, missed);
  }

  async #deliver(
    notification: Notification,
    message: Message,
    channel: NotificationChannel,
  ): Promise<Delivery> {
    const { name } = channel;
    const claim = await this.#claim(notification, name);
    if (claim.kind === 'wait') {
      const reason = "the channel's messages for the next minute are already queued";
      return { channel: name, outcome: 'waiting', delayMs: claim.delayMs, reason };
    }
    if (claim.kind === 'settled') {
      if (claim.status !== 'dropped') return { channel: name, outcome: claim.status };
      return { channel: name, outcome: 'dropped', reason: 'too many notifications are waiting' };
    }
    try {
      await channel.send(message(claim.missed));
    } catch (error) {
      return this.#settleFailure(notification.id, name, error);
    }
    await this.#log.settle(notification.id, name, 'sent');
    return { channel: name, outcome: 'sent' };
  }

  async #settleFailure(
    id: string,
    channel: NotificationChannelName,
    error: unknown,
  ): Promise<Delivery> {
    if (!(error instanceof ChannelError)) throw error;
    const { message: reason, retryAfterMs: delayMs } = error;
    if (delayMs === undefined) {
      await this.#log.settle(id, channel, 'dropped');
      return { channel, outcome: 'dropped', reason };
    }
    const outcome = await this.#log.postpone(id, channel, delayMs);
    return outcome === 'dropped'
      ? { channel, outcome, reason }
      : { channel, outcome, delayMs, reason };
  }

  #claim(notification: Notification, channel: NotificationChannelName): Promise<Claim> {
    const claim = this.#claimed.then(() => this.#log.claim(notification, channel));
    this.#claimed = claim.catch(() => undefined); // the claim's caller receives the error
    return claim;
  }
}
