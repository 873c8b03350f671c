import { ownedThrough } from '../schema/policies.js';
import { boolean, index, key, nullable, table, text, timestamp } from '../schema/table.js';

/** Users' settings for the heartbeat of all of their agents. */
export const Heartbeat = table(
  'heartbeats',
  {
    userId: key(text()),
    /** Interval such as `3h`. */
    frequency: text(),
    enabled: boolean(),
    /** True if Temporal's schedule is known to match this row. */
    scheduled: boolean(),
    lastHeartbeatAt: nullable(timestamp()),
    /** Time of the setting; heartbeats follow at whole intervals after it. */
    updatedAt: timestamp(),
  },
  [index('heartbeats_unscheduled', ['updated_at'], { scheduled: false })],
  ownedThrough('user_id'),
);
