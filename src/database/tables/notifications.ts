import { PLATFORM } from '../policies.js';
import { key, nullable, table, text, timestamp, withDefault } from '../table.js';

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
