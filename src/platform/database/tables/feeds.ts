import { literal } from 'sequelize';
import { PLATFORM } from '../schema/policies.js';
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

/** Feeds of the operator that were read, with their last items. */
export const dataFeeds = table(
  'data_feeds',
  {
    id: key(text()),
    /** Address of the items: they are of no use for another one. */
    url: text(),
    items: withDefault(json<readonly object[]>(), literal("'[]'")),
    etag: nullable(text()),
    lastModified: nullable(text()),
    /** Time when the last fetch began. */
    triedAt: withDefault(timestamp(), literal('now()')),
    /** End of the lease of the process that fetches the feed. */
    readingUntil: nullable(timestamp()),
    /** Time of the last fetch that succeeded. */
    fetchedAt: nullable(timestamp()),
    /** Reason why the last fetch failed. */
    error: nullable(text()),
  },
  [index('data_feeds_tried', ['tried_at'])],
  PLATFORM,
);
