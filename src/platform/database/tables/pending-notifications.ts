import { literal } from 'sequelize';
import type { NotifiedEvent } from '../../../types/notification.js';
import { ownedThrough } from '../schema/policies.js';
import {
  index,
  json,
  key,
  nullable,
  table,
  text,
  timestamp,
  withDefault,
} from '../schema/table.js';

/** An outbox of notifications to operators. */
export const pendingNotifications = table(
  'pending_notifications',
  {
    /** The notification's own. */
    id: key(text()),
    /** Null for a notification about the platform, which is the operator's. */
    agentId: nullable(text()),
    userId: text(),
    event: json<NotifiedEvent>(),
    /** Time when the notification is delivered, or delivery is retried. */
    dueAt: withDefault(timestamp(), literal('now()')),
  },
  [index('pending_notifications_due', ['due_at'])],
  ownedThrough('user_id'),
);
