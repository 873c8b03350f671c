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

/** Docker hosts, as reported by their workers. */
export const Host = table(
  'hosts',
  {
    id: key(text()),
    /** Maximum number of agents on the host. */
    capacity: integer(),
    /** Range of loopback ports for the agents' gateways. */
    firstPort: integer(),
    lastPort: integer(),
    /** True if the engine answered at the worker's last report. */
    engineAvailable: boolean(),
    /** Time of the worker's last report, by the database's clock. */
    seenAt: timestamp(),
    /** Docker's id of the engine that leases the host's name; null until known. */
    engineId: nullable(text()),
    /** Address at which other processes reach the worker; null if it does not listen. */
    url: nullable(text()),
    /** Since when the host gets no new agents, by an operator's decision. */
    cordonedAt: nullable(timestamp()),
    /** Since when the host is being removed permanently. */
    removedAt: nullable(timestamp()),
    /** Free bytes on the disk with the engine's volumes; null if unknown. */
    diskFree: nullable(bigint()),
    /** True if the free space is below the host's minimum. */
    diskLow: withDefault(boolean(), false),
    /** Restriction of the agents to the public internet: `guarded`, `open` or `unknown`. */
    egress: withDefault(text(), 'unknown'),
    /** Reason if the agents are not restricted. */
    egressReason: nullable(text()),
    /** True if the host starts no agents because of its egress state. */
    egressRefuses: withDefault(boolean(), false),
    /** True if users in its containers are mapped to unprivileged users of the host; null if unknown. */
    userNamespaces: nullable(boolean()),
    createdAt: created(),
    updatedAt: updated(),
  },
  [],
  PLATFORM,
);
