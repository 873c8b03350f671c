import { literal, Op } from 'sequelize';
import type { AspectRatio, VideoStatus } from '../../../types/videos.js';
import { ownedThrough, PLATFORM } from '../schema/policies.js';
import {
  bigint,
  boolean,
  index,
  integer,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** Videos that users have made, each by a prediction at the provider. */
export const videos = table(
  'videos',
  {
    id: key(text()),
    userId: text(),
    agentId: nullable(text()),
    prompt: text(),
    /** Seconds. */
    duration: nullable(integer()),
    aspectRatio: nullable(text<AspectRatio>()),
    status: withDefault(text<VideoStatus>(), 'queued'),
    /** Set before the request to the provider: a request whose answer was lost is not repeated. */
    askedAt: nullable(timestamp()),
    predictionId: nullable(text()),
    /** True if the provider has reported a change that the run has not seen yet. */
    hinted: withDefault(boolean(), false),
    /** True while the file counts for the limit, also while it is being written. */
    hasFile: withDefault(boolean(), false),
    size: nullable(bigint()),
    contentType: nullable(text()),
    error: nullable(text()),
    /** Null as long as a run may have work left. */
    settledAt: nullable(timestamp()),
    dueAt: withDefault(timestamp(), literal('now()')),
    createdAt: withDefault(timestamp(), literal('now()')),
    completedAt: nullable(timestamp()),
  },
  [
    unique('videos_prediction_key', ['prediction_id']),
    index('videos_user_created', ['user_id', 'created_at', 'id']),
    index('videos_agent', ['agent_id', 'user_id'], { agent_id: { [Op.ne]: null } }),
    index('videos_due', ['due_at'], { settled_at: null }),
    index('videos_file', ['completed_at', 'id'], { has_file: true }),
    index('videos_settled', ['settled_at'], { settled_at: { [Op.ne]: null } }),
  ],
  ownedThrough('user_id'),
);

/** Videos of each UTC day, by all users. */
export const videoDays = table(
  'video_days',
  {
    /** The day, as `YYYY-MM-DD`. */
    id: key(text()),
    count: integer(),
  },
  [],
  PLATFORM,
);
