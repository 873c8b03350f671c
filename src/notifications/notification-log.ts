import { Op, type Transaction } from 'sequelize';
import type { Database } from '../database/database.js';
import type { NotificationChannelName, NotificationRow } from '../database/models.js';
import { lockUntilEnd } from '../database/transaction-sql.js';
import type { Notification } from './notification.js';

/** Messages of one channel within a minute, over all workers. */
const MAX_PER_MINUTE = 20;
const MINUTE_MS = 60_000;

/** How long a notification may wait for its turn, or for a service that does not take it. */
const MAX_WAIT_MS = 5 * MINUTE_MS;

/** Within this span the same of the same agent is told once. */
const REPEAT_MS = MINUTE_MS;

const KEPT_MS = 30 * 24 * 60 * MINUTE_MS;
const PURGED_AT_ONCE = 100;

/** What becomes of a notification in one channel. */
export type Claim =
  /** It is to be sent now; `missed` are those that were dropped since the last one was sent. */
  | { readonly kind: 'send'; readonly missed: number }
  | { readonly kind: 'wait'; readonly delayMs: number }
  | { readonly kind: 'settled'; readonly status: 'sent' | 'repeated' | 'dropped' };

/** Which notifications were sent, and when the next may be. All workers share it. */
export class NotificationLog {
  constructor(private readonly database: Database) {}

  /** Takes the notification's turn in the channel, or tells when it comes. */
  async claim(notification: Notification, channel: NotificationChannelName): Promise<Claim> {
    return this.locked(channel, async (transaction) => {
      const now = new Date();
      await this.purge(channel, now, transaction);
      const { Notification: Row } = this.database.models;
      const { id } = notification;
      const found = await Row.findOne({ where: { id, channel }, transaction });
      if (found && isSettled(found.status)) return { kind: 'settled', status: found.status };
      const row =
        found ??
        Row.build({
          id,
          channel,
          agentId: notification.agent.agentId,
          event: eventOf(notification),
          status: 'waiting',
          createdAt: now,
          dueAt: now,
        });
      if (!found && (await this.isRepeated(row, transaction))) {
        await row.set({ status: 'repeated', settledAt: now }).save({ transaction });
        return { kind: 'settled', status: 'repeated' };
      }
      const dueAt = await this.dueAtOf(row, found !== null, now, transaction);
      if (dueAt.getTime() - row.createdAt.getTime() > MAX_WAIT_MS) {
        await row.set({ status: 'dropped', settledAt: now }).save({ transaction });
        return { kind: 'settled', status: 'dropped' };
      }
      const isNow = dueAt <= now;
      if (!isNow) {
        await row.set({ status: 'waiting', dueAt }).save({ transaction });
        return { kind: 'wait', delayMs: dueAt.getTime() - now.getTime() };
      }
      await row.set({ status: 'sending', dueAt, attemptedAt: now }).save({ transaction });
      return { kind: 'send', missed: await this.missed(channel, transaction) };
    });
  }

  /** It was sent, or will not be. */
  async settle(id: string, channel: NotificationChannelName, status: 'sent' | 'dropped') {
    await this.database
      .asPlatform()
      .transaction((transaction) =>
        this.database.models.Notification.update(
          { status, settledAt: new Date() },
          { where: { id, channel }, transaction },
        ),
      );
  }

  /** Puts it off, unless that would be for too long: then it is dropped. */
  async postpone(
    id: string,
    channel: NotificationChannelName,
    delayMs: number,
  ): Promise<'waiting' | 'dropped'> {
    return this.database.asPlatform().transaction(async (transaction) => {
      const where = { id, channel };
      const row = await this.database.models.Notification.findOne({ where, transaction });
      const now = Date.now();
      if (!row || now + delayMs - row.createdAt.getTime() > MAX_WAIT_MS) {
        await row?.update({ status: 'dropped', settledAt: new Date(now) }, { transaction });
        return 'dropped';
      }
      await row.update({ status: 'waiting', dueAt: new Date(now + delayMs) }, { transaction });
      return 'waiting';
    });
  }

  /** One claim of a channel at a time, so that two never take the same turn. */
  private locked<T>(
    channel: NotificationChannelName,
    work: (transaction: Transaction) => Promise<T>,
  ): Promise<T> {
    // Operators hear of all tenants' agents through the same channel.
    return this.database.asPlatform().transaction(async (transaction) => {
      await lockUntilEnd(transaction, `notifications:${channel}`);
      return work(transaction);
    });
  }

  /** Now, if the channel has room; else a minute after the one that is as many places ahead. */
  private async dueAtOf(
    row: NotificationRow,
    isQueued: boolean,
    now: Date,
    transaction: Transaction,
  ): Promise<Date> {
    if (isQueued && row.dueAt > now) return row.dueAt;
    const { Notification: Row } = this.database.models;
    const others = { channel: row.channel, id: { [Op.ne]: row.id } };
    if (isQueued) {
      // Its turn has come, or is long past: what counts is what was really tried since.
      const attemptedAt = { [Op.gt]: new Date(now.getTime() - MINUTE_MS) };
      const tried = await Row.count({ where: { ...others, attemptedAt }, transaction });
      if (tried < MAX_PER_MINUTE) return now;
    }
    const ahead = await Row.findOne({
      where: { ...others, status: ['waiting', 'sending', 'sent'] },
      order: [['dueAt', 'DESC']],
      offset: MAX_PER_MINUTE - 1,
      transaction,
    });
    return new Date(Math.max(now.getTime(), (ahead?.dueAt.getTime() ?? 0) + MINUTE_MS));
  }

  /** An agent that comes and goes is told of once a minute. That it stays down is told always. */
  private async isRepeated(row: NotificationRow, transaction: Transaction): Promise<boolean> {
    if (row.event === 'crash_loop') return false;
    const told = await this.database.models.Notification.count({
      where: {
        id: { [Op.ne]: row.id },
        channel: row.channel,
        agentId: row.agentId,
        event: row.event,
        status: ['waiting', 'sending', 'sent'],
        createdAt: { [Op.gt]: new Date(row.createdAt.getTime() - REPEAT_MS) },
      },
      transaction,
    });
    return told > 0;
  }

  private async missed(
    channel: NotificationChannelName,
    transaction: Transaction,
  ): Promise<number> {
    const { Notification: Row } = this.database.models;
    const lastSent = await Row.max<Date | null, InstanceType<typeof Row>>('settledAt', {
      where: { channel, status: 'sent' },
      transaction,
    });
    return Row.count({
      where: {
        channel,
        status: 'dropped',
        ...(lastSent && { settledAt: { [Op.gt]: lastSent } }),
      },
      transaction,
    });
  }

  private async purge(
    channel: NotificationChannelName,
    now: Date,
    transaction: Transaction,
  ): Promise<void> {
    const dueAt = { [Op.lt]: new Date(now.getTime() - KEPT_MS) };
    const { Notification: Row } = this.database.models;
    await Row.destroy({ where: { channel, dueAt }, limit: PURGED_AT_ONCE, transaction });
  }
}

function isSettled(status: NotificationRow['status']): status is 'sent' | 'repeated' | 'dropped' {
  return status === 'sent' || status === 'repeated' || status === 'dropped';
}

/** Each attempt at a repair is another event. */
function eventOf(notification: Notification): string {
  if (notification.event !== 'repair_attempt') return notification.event;
  return `repair_attempt ${notification.attempt}`;
}
