import type { Database, Statements } from '../database/database.js';
import type { HostLoad } from './host-status.js';

/** What a worker says of the host that it stands beside. */
export interface HostReport {
  readonly id: string;
  /** Most agents on it. */
  readonly capacity: number;
  /** The loopback ports that its agents' gateways take. */
  readonly ports: { readonly first: number; readonly last: number };
  readonly engineAvailable: boolean;
}

// The database's clock: the hosts' own need not agree.
const REPORT = `
  INSERT INTO hosts
    (id, capacity, first_port, last_port, engine_available, seen_at, created_at, updated_at)
  VALUES ($id, $capacity, $first, $last, $engineAvailable, now(), now(), now())
  ON CONFLICT (id) DO UPDATE SET
    capacity = excluded.capacity, first_port = excluded.first_port, last_port = excluded.last_port,
    engine_available = excluded.engine_available, seen_at = excluded.seen_at,
    updated_at = excluded.updated_at`;

/** Puts down that the host is there, and how it is. */
export async function reportHost(database: Database, report: HostReport): Promise<void> {
  const { ports, ...values } = report;
  await database.asPlatform().query(REPORT, { ...values, ...ports });
}

/** Every host with what is on it, by id; for any tenant. */
export function hostLoads(db: Statements): Promise<HostLoad[]> {
  return db.query<HostLoad>(
    `SELECT id, capacity, agents, engine_available AS "engineAvailable", seen_at AS "seenAt",
            unseen_seconds AS "unseenSeconds" FROM host_loads()`,
  );
}
