import { recordAudit } from '../../platform/audit/audit.js';
import type { Database, Statements, TenantTransaction } from '../../platform/database/database.js';
import type { EgressState } from '../../docker/egress/host-egress.js';
import { isSilent, SILENT_AFTER_SECONDS, type HostLoad } from './host-status.js';

export interface HostReport {
  readonly id: string;
  /** Maximum number of agents on the host; undefined while unknown. */
  readonly capacity: number | undefined;
  /** The loopback ports for its agents' gateways. */
  readonly ports: { readonly first: number; readonly last: number };
  readonly engineAvailable: boolean;
  /** Docker's own id; undefined until the engine has answered. */
  readonly engineId?: string | undefined;
  /** The worker's address; undefined if the worker does not listen. */
  readonly url?: string | undefined;
  /** The disk of the engine's volumes; undefined if it cannot be measured. */
  readonly disk?: { readonly free: number; readonly low: boolean } | undefined;
  readonly egress?: EgressState | undefined;
  /** True if container users are remapped to unprivileged host users; undefined while unknown. */
  readonly userNamespaces?: boolean | undefined;
}

/** Two machines with one name would receive each other's agents. */
export class HostNameTakenError extends Error {
  override readonly name = 'HostNameTakenError';

  constructor(host: string, why: string) {
    super(`The host name "${host}" ${why}`);
  }
}

// Uses the database's clock, because the hosts' clocks may differ. A report without an engine id cannot
// overwrite a host that has one.
const REPORT = `
  INSERT INTO hosts
    (id, capacity, first_port, last_port, engine_id, engine_available, url, disk_free, disk_low, egress,
     egress_reason, egress_refuses, user_namespaces, seen_at, created_at, updated_at)
  VALUES ($id, COALESCE($capacity, 0), $first, $last, $engineId, $engineAvailable, $url, $diskFree, $diskLow,
          $egress, $egressReason, $egressRefuses, $userNamespaces, now(), now(), now())
  ON CONFLICT (id) DO UPDATE SET
    capacity = COALESCE($capacity, hosts.capacity), first_port = excluded.first_port, last_port = excluded.last_port,
    engine_id = excluded.engine_id, engine_available = excluded.engine_available, url = excluded.url,
    disk_free = excluded.disk_free, disk_low = excluded.disk_low, egress = excluded.egress,
    egress_reason = excluded.egress_reason, egress_refuses = excluded.egress_refuses,
    user_namespaces = COALESCE(excluded.user_namespaces, hosts.user_namespaces),
    seen_at = excluded.seen_at, updated_at = excluded.updated_at
  WHERE hosts.removed_at IS NULL
    AND (hosts.engine_id IS NULL OR hosts.engine_id = excluded.engine_id)
  RETURNING engine_id AS "engineId"`;

/**
 * Records the host's state and renews the lease of its name. The first engine gets the lease, another only
 * after 45 s of silence, if the host has no agents or `takeoverFrom` names the old engine.
 * @returns true if this engine has the lease; false while its id is unknown. @throws HostNameTakenError
 */
export async function reportHost(
  database: Database,
  report: HostReport,
  takeoverFrom?: string,
): Promise<boolean> {
  const { capacity, ports, engineId, url, disk, egress, userNamespaces, ...values } = report;
  const platform = database.asPlatform();
  const renew = async () => {
    const [row] = await platform.query<{ engineId: string | null }>(REPORT, {
      ...values,
      ...ports,
      capacity: capacity ?? null,
      engineId: engineId ?? null,
      url: url ?? null,
      diskFree: disk?.free ?? null,
      diskLow: disk?.low ?? false,
      egress: egress?.status ?? 'unknown',
      egressReason: egress?.reason ?? null,
      egressRefuses: egress?.refuses ?? false,
      userNamespaces: userNamespaces ?? null,
    });
    return row && row.engineId !== null;
  };
  const renewed = await renew();
  if (renewed !== undefined) return renewed;
  const hasTaken = await platform.transaction((db) =>
    takeLease(db, report.id, engineId, takeoverFrom),
  );
  return hasTaken ? ((await renew()) ?? false) : false;
}

/**
 * Takes the lease from another engine, if allowed; returns true if this engine has the lease, as far as
 * known.
 */
async function takeLease(
  db: TenantTransaction,
  id: string,
  engineId: string | undefined,
  takeoverFrom: string | undefined,
): Promise<boolean> {
  // Prevents placement on the host until the lease is decided.
  await db.lock('hosts');
  const host = await db.Host.findByPk(id, { lock: true });
  if (host?.removedAt) throw new HostNameTakenError(id, 'is being removed: try again in a minute');
  if (!host || host.engineId === null || host.engineId === engineId) return true;
  if (engineId === undefined) return false;
  const load = await hostLoad(db, id);
  if (!load) return false;
  const { agents, unseenSeconds } = load;
  if (!isSilent(load) || (agents > 0 && takeoverFrom !== host.engineId)) {
    throw new HostNameTakenError(
      id,
      `belongs to another Docker engine, ${host.engineId}, with ${agents} agents (last ` +
        `report ${Math.round(unseenSeconds)} s ago): give this machine another name in AGENT_HOST, or, if ` +
        `the old engine is permanently lost, set AGENT_HOST_TAKEOVER=${host.engineId}, which takes effect ${SILENT_AFTER_SECONDS} s after the last report`,
    );
  }
  await db.Host.update({ engineId }, { where: { id } });
  await recordAudit(db, {
    actor: 'worker',
    action: 'host.takeover',
    subject: id,
    detail: { from: host.engineId, to: engineId, agents },
  });
  return true;
}

/** Returns every host's load, by id; any tenant may call this. */
export function hostLoads(db: Statements): Promise<HostLoad[]> {
  return db.query<HostLoad>(
    `SELECT id, capacity, agents, engine_available AS "engineAvailable", seen_at AS "seenAt",
            unseen_seconds AS "unseenSeconds", cordoned_at IS NOT NULL AS cordoned,
            removed_at IS NOT NULL AS removing, disk_low AS "diskLow",
            egress_refuses AS "egressRefuses"
       FROM host_loads() JOIN host_marks() USING (id) JOIN host_disks() USING (id)
       JOIN host_egress() USING (id) ORDER BY id`,
  );
}

export interface HostDetail extends HostLoad {
  /** Docker's own id; null until the engine has answered. */
  readonly engineId: string | null;
  readonly url: string | null;
  /** Free bytes on the disk of the engine's volumes; null if unknown. */
  readonly diskFree: number | null;
  readonly egress: EgressState['status'];
  readonly egressReason: string | null;
  /** Container users are remapped to unprivileged host users; null if unknown. */
  readonly userNamespaces: boolean | null;
}

export async function hostDetails(database: Database): Promise<HostDetail[]> {
  const platform = database.asPlatform();
  const [loads, rows] = await Promise.all([
    hostLoads(platform),
    platform.query<Omit<HostDetail, keyof HostLoad> & { readonly id: string }>(
      `SELECT id, engine_id AS "engineId", url, disk_free::float8 AS "diskFree", egress,
              egress_reason AS "egressReason", user_namespaces AS "userNamespaces" FROM hosts`,
    ),
  ]);
  return loads.flatMap((load) => {
    const row = rows.find(({ id }) => id === load.id);
    return row ? [{ ...load, ...row }] : [];
  });
}

export async function hostLoad(db: Statements, id: string): Promise<HostLoad | undefined> {
  return (await hostLoads(db)).find((host) => host.id === id);
}

/** Reports whether a host was or is being removed permanently; any tenant may call this. */
export async function isHostRemoved(db: Statements, id: string): Promise<boolean> {
  const sql = 'SELECT id FROM host_marks() WHERE id = $id AND removed_at IS NULL';
  return (await db.query(sql, { id })).length === 0;
}
