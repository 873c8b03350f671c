import { ownedThrough } from '../schema/policies.js';
import { boolean, key, nullable, table, text, timestamp } from '../schema/table.js';

/** Users' settings for the heartbeat of all of their agents. */
export const Heartbeat = table(
  'heartbeats',
  {
    userId: key(text()),
    /** Such as `3h`. */
    frequency: text(),
    enabled: boolean(),
    /** Whether Temporal's schedule is known to follow this row. */
    scheduled: boolean(),
    lastHeartbeatAt: nullable(timestamp()),
    /** When the setting was made; heartbeats come in whole intervals after it. */
    updatedAt: timestamp(),
  },
  [{ name: 'heartbeats_unscheduled', fields: ['updated_at'], where: { scheduled: false } }],
  ownedThrough('user_id'),
);
