import { literal, Op } from 'sequelize';
import type { ByteCount, RadioFormat } from '../../../types/radio.js';
import { ownedThrough } from '../schema/policies.js';
import {
  index,
  integer,
  json,
  key,
  nullable,
  table,
  text,
  timestamp,
  withDefault,
} from '../schema/table.js';

/** Streams of the radio, and what was measured of their sources. */
export const radioStreams = table(
  'radio_streams',
  {
    id: key(text()),
    userId: text(),
    agentId: nullable(text()),
    title: text(),
    description: nullable(text()),
    genre: nullable(text()),
    format: text<RadioFormat>(),
    passwordHash: text(),
    peakListeners: withDefault(integer(), 0),
    /** The source that the bitrate and the counts belong to. */
    sourceStartedAt: nullable(timestamp()),
    /** In kbit/s. */
    bitrate: nullable(integer()),
    counts: withDefault(json<readonly ByteCount[]>(), literal("'[]'")),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [
    index('radio_streams_user_created', ['user_id', 'created_at', 'id']),
    index('radio_streams_agent', ['agent_id'], { agent_id: { [Op.ne]: null } }),
  ],
  ownedThrough('user_id'),
);
