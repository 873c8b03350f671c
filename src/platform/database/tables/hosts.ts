import { PLATFORM } from '../schema/policies.js';
import {
  bigint,
  boolean,
  created,
  integer,
  key,
  nullable,
  table,
  text,
  timestamp,
  updated,
  withDefault,
} from '../schema/table.js';

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
    /** Docker's own id of the engine that the name is leased to; null until one is known. */
    engineId: nullable(text()),
    /** Where other processes reach its worker; null where that does not listen. */
    url: nullable(text()),
    /** Since when it gets no new agents, because an operator said so. */
    cordonedAt: nullable(timestamp()),
    /** Since when it is being removed for good. */
    removedAt: nullable(timestamp()),
    /** Bytes that are free where its engine keeps volumes; null when that is not known. */
    diskFree: nullable(bigint()),
    /** Whether that is less than the host's floor. */
    diskLow: withDefault(boolean(), false),
    /** Whether its agents are kept to the public internet: `guarded`, `open` or `unknown`. */
    egress: withDefault(text(), 'unknown'),
    /** Why not. */
    egressReason: nullable(text()),
    /** Whether it starts no agents because of that. */
    egressRefuses: withDefault(boolean(), false),
    /** Whether users of its containers are none of its own; null when that is not known. */
    userNamespaces: nullable(boolean()),
    createdAt: created(),
    updatedAt: updated(),
  },
  [],
  PLATFORM,
);
