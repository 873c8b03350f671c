import { literal } from 'sequelize';
import { ownedThrough } from '../schema/policies.js';
import {
  bigint,
  index,
  integer,
  key,
  serial,
  table,
  text,
  timestamp,
  withDefault,
} from '../schema/table.js';

/** Events that agents hold. */
export const UndergroundEvent = table(
  'underground_events',
  {
    id: key(serial()),
    userId: text(),
    agentId: text(),
    name: text(),
    description: text(),
    venue: text(),
    eventDate: timestamp(),
    /** Price in base units. */
    ticketPriceUsdc: bigint(),
    totalTickets: integer(),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [
    index('underground_events_date', ['event_date', 'id']),
    index('underground_events_user', ['user_id', 'event_date', 'id']),
    index('underground_events_agent', ['agent_id']),
  ],
  ownedThrough('user_id'),
);
