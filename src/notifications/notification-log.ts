import { Op } from 'sequelize';
import type { Database, TenantTransaction } from '../platform/database/database.js';
import type { NotificationChannelName, NotificationRow } from '../platform/database/models.js';
import type { Notification } from '../types/notification.js';

/** Maximum number of messages of one channel in a minute, across all workers. */
const MAX_PER_MINUTE = 20;
const MINUTE_MS = 60_000;

/** Longest time that a notification may wait for its turn or for a failing service. */
const MAX_WAIT_MS = 5 * MINUTE_MS;

/** Period in which repeated notifications of an agent's event are sent once. */
const REPEAT_MS = MINUTE_MS;

const KEPT_MS = 30 * 24 * 60 * MINUTE_MS;
const PURGED_AT_ONCE = 100;

/** The result of claiming a notification's turn in one channel. */
export type Claim =
  /** Send now; `missed` counts notifications dropped since the last one was sent. */
  | { readonly kind: 'send'; readonly missed: number }
  | { readonly kind: 'wait'; readonly delayMs: number }
  | { readonly kind: 'settled'; readonly status: 'sent' | 'repeated' | 'dropped' };

/** A notification's data before its turn. */
type Pending = Pick<
  NotificationRow,
  'id' | 'channel' | 'agentId' | 'userId' | 'event' | 'createdAt' | 'dueAt'
>;

/** A log of sent notifications that schedules the next ones, shared by all workers. */
export class NotificationLog {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Claims the notification's turn in the channel, or returns the time until then. */
  async claim(notification: Notification, channel: NotificationChannelName): Promise<Claim> {
    return this.#locked(channel, async (db) => {
      const now = new Date();
      await purge(db, channel, now);
      const { id } = notification;
      const found = await db.Notification.findOne({ where: { id, channel } });
      if (found && isSettled(found.status)) return { kind: 'settled', status: found.status };
      const { agentId, userId } = notification.agent;
      const event = eventOf(notification);
      const row = found ?? { id, channel, agentId, userId, event, createdAt: now, dueAt: now };
      if (!found && (await isRepeated(db, row))) {
        await db.Notification.upsert({ ...row, status: 'repeated', settledAt: now });
        return { kind: 'settled', status: 'repeated' };
      }
      const free = await dueAtOf(db, row, found !== null, now);
      const dueAt = free > now && !found ? await exchangeTurn(db, row, free, now) : free;
      if (isTooLate(row, dueAt)) {
        await db.Notification.upsert({ ...row, status: 'dropped', settledAt: now });
        return { kind: 'settled', status: 'dropped' };
      }
      if (dueAt > now) {
        await db.Notification.upsert({ ...row, status: 'waiting', dueAt });
        return { kind: 'wait', delayMs: dueAt.getTime() - now.getTime() };
      }
      await db.Notification.upsert({ ...row, status: 'sending', dueAt, attemptedAt: now });
      return { kind: 'send', missed: await missed(db, channel) };
    });
  }

  async settle(id: string, channel: NotificationChannelName, status: 'sent' | 'dropped') {
    await this.#database
      .asPlatform()
      .transaction((db) =>
        db.Notification.update({ status, settledAt: new Date() }, { where: { id, channel } }),
      );
  }

  /** Postpones the notification, or drops it if the wait would be too long. */
  async postpone(
    id: string,
    channel: NotificationChannelName,
    delayMs: number,
  ): Promise<'waiting' | 'dropped'> {
    return this.#database.asPlatform().transaction(async (db) => {
      const where = { id, channel };
      const row = await db.Notification.findOne({ where });
      const now = Date.now();
      if (!row || now + delayMs - row.createdAt.getTime() > MAX_WAIT_MS) {
        await db.Notification.update({ status: 'dropped', settledAt: new Date(now) }, { where });
        return 'dropped';
      }
      const dueAt = new Date(now + delayMs);
      await db.Notification.update({ status: 'waiting', dueAt }, { where });
      return 'waiting';
    });
  }

  /** Runs one claim of a channel at a time, so that no turn is claimed twice. */
  #locked<T>(
    channel: NotificationChannelName,
    work: (db: TenantTransaction) => Promise<T>,
  ): Promise<T> {
    // A channel is shared by all tenants' agents.
    return this.#database.asPlatform().transaction(async (db) => {
      await db.lock(`notifications:${channel}`);
      return work(db);
    });
  }
}

/** Returns now if the channel has room, else a minute after the one MAX_PER_MINUTE places ahead. */
async function dueAtOf(
  db: TenantTransaction,
  row: Pending,
  isQueued: boolean,
  now: Date,
): Promise<Date> {
  if (isQueued && row.dueAt > now) return row.dueAt;
  const others = { channel: row.channel, id: { [Op.ne]: row.id } };
  if (isQueued) {
    // The turn has arrived or passed, so only actual attempts since then count.
    const attemptedAt = { [Op.gt]: new Date(now.getTime() - MINUTE_MS) };
    const tried = await db.Notification.count({ where: { ...others, attemptedAt } });
    if (tried < MAX_PER_MINUTE) return now;
  }
  const ahead = await db.Notification.findOne({
    where: { ...others, status: ['waiting', 'sending', 'sent'] },
    order: [['dueAt', 'DESC']],
    offset: MAX_PER_MINUTE - 1,
  });
  return new Date(Math.max(now.getTime(), (ahead?.dueAt.getTime() ?? 0) + MINUTE_MS));
}

/**
 * Returns the turn of a notification, given the `free` one: an owner with fewer waiting notifications gets the
 * next turn of the owner with the most, who gets the free one. So no owner can delay the others.
 */
async function exchangeTurn(
  db: TenantTransaction,
  row: Pending,
  free: Date,
  now: Date,
): Promise<Date> {
  const waiting = await db.Notification.findAll({
    where: { channel: row.channel, status: 'waiting' },
    order: [['dueAt', 'ASC']],
  });
  const of = (owner: string) => waiting.filter(({ userId }) => userId === owner);
  const owners = [...new Set(waiting.map(({ userId }) => userId))].map(of);
  const [most = []] = owners.sort((one, other) => other.length - one.length);
  const next = most.find(({ dueAt }) => dueAt > now && dueAt < free);
  if (!next || most.length <= of(row.userId).length + 1) return free;
  const { id, channel, dueAt } = next;
  const change = isTooLate(next, free)
    ? { status: 'dropped' as const, settledAt: now }
    : { dueAt: free };
  await db.Notification.update(change, { where: { id, channel } });
  return dueAt;
}

const isTooLate = ({ createdAt }: Pick<Pending, 'createdAt'>, dueAt: Date): boolean =>
  dueAt.getTime() - createdAt.getTime() > MAX_WAIT_MS;

/** Reports whether the event repeats one of the last minute; a crash loop never does. */
async function isRepeated(db: TenantTransaction, row: Pending): Promise<boolean> {
  if (row.event === 'crash_loop') return false;
  const notified = await db.Notification.count({
    where: {
      id: { [Op.ne]: row.id },
      channel: row.channel,
      agentId: row.agentId,
      event: row.event,
      status: ['waiting', 'sending', 'sent'],
      createdAt: { [Op.gt]: new Date(row.createdAt.getTime() - REPEAT_MS) },
    },
  });
  return notified > 0;
}

async function missed(db: TenantTransaction, channel: NotificationChannelName): Promise<number> {
  const lastSent = await db.Notification.findOne({
    attributes: ['settledAt'],
    where: { channel, status: 'sent' },
    order: [['settledAt', 'DESC']],
  });
  return db.Notification.count({
    where: {
      channel,
      status: 'dropped',
      ...(lastSent?.settledAt && { settledAt: { [Op.gt]: lastSent.settledAt } }),
    },
  });
}

async function purge(
  db: TenantTransaction,
  channel: NotificationChannelName,
  now: Date,
): Promise<void> {
  const dueAt = { [Op.lt]: new Date(now.getTime() - KEPT_MS) };
  await db.Notification.destroy({ where: { channel, dueAt }, limit: PURGED_AT_ONCE });
}

function isSettled(status: NotificationRow['status']): status is 'sent' | 'repeated' | 'dropped' {
  return status === 'sent' || status === 'repeated' || status === 'dropped';
}

/** Returns the event's key. Each repair attempt, payment and wallet counts as a separate event. */
function eventOf(notification: Notification): string {
  const { event } = notification;
  switch (event) {
    case 'repair_attempt':
      return `${event} ${notification.attempt}`;
    case 'nonces_missing':
      return `${event} ${notification.chainId} ${notification.signer}`;
    case 'payment_failed':
      return `${event} ${notification.paymentId}`;
    case 'chain_unknown':
    case 'fees_too_high':
      return `${event} ${notification.chainId}`;
    case 'fees_unpayable':
      return `${event} ${notification.chainId} ${notification.payer}`;
    case 'settlement_given_up':
    case 'session_unpaid':
      return `${event} ${notification.sessionId}`;
    default:
      return event;
  }
}
