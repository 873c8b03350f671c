import { PLATFORM } from '../policies.js';
import { boolean, created, integer, key, table, text, timestamp, updated } from '../table.js';

/** The Docker hosts, as the workers beside them write them down. */
export const Host = table(
  'hosts',
  {
    id: key(text()),
    /** Most agents on it. */
    capacity: integer(),
    /** The loopback ports that its agents' gateways take. */
    firstPort: integer(),
    lastPort: integer(),
    /** Whether its engine answered when the worker was last heard of. */
    engineAvailable: boolean(),
    /** When its worker was last heard of, by the database's clock. */
    seenAt: timestamp(),
    createdAt: created(),
    updatedAt: updated(),
  },
  [],
  PLATFORM,
);
