import { literal } from 'sequelize';
import type { NotifiedEvent } from '../../../types/notification.js';
import { ownedThrough, PLATFORM } from '../schema/policies.js';
import { json, key, nullable, table, text, timestamp, withDefault } from '../schema/table.js';

export type NotificationChannelName = 'telegram' | 'discord';

/** `repeated`: the same was told a moment ago. `dropped`: it was not told, and will not be. */
export type NotificationStatus = 'waiting' | 'sending' | 'sent' | 'repeated' | 'dropped';

/** Notifications, each on its way through one channel. */
export const Notification = table(
  'notifications',
  {
    /** Made by the workflow. */
    id: key(text()),
    channel: key(text<NotificationChannelName>()),
    agentId: text(),
    userId: withDefault(text(), ''),
    /** What it tells; two with the same one say the same of the agent. */
    event: text(),
    status: text<NotificationStatus>(),
    createdAt: timestamp(),
    /** Its turn in the channel. */
    dueAt: timestamp(),
    /** When it was last given to the service. */
    attemptedAt: nullable(timestamp()),
    settledAt: nullable(timestamp()),
  },
  [
    { name: 'notifications_channel_due', fields: ['channel', 'due_at'] },
    { name: 'notifications_channel_status', fields: ['channel', 'status', 'settled_at'] },
    { name: 'notifications_agent', fields: ['agent_id', 'created_at'] },
  ],
  PLATFORM,
);

/** What operators are still to be told. */
export const PendingNotification = table(
  'pending_notifications',
  {
    /** The notification's own. */
    id: key(text()),
    /** Null for what is of the platform, and told in the operator's name. */
    agentId: nullable(text()),
    userId: text(),
    event: json<NotifiedEvent>(),
    /** When it is taken up, or taken up again. */
    dueAt: withDefault(timestamp(), literal('now()')),
  },
  [{ name: 'pending_notifications_due', fields: ['due_at'] }],
  ownedThrough('user_id'),
);
