import { recordAudit } from '../../platform/audit/audit.js';
import type { Database, Statements, TenantTransaction } from '../../platform/database/database.js';
import type { EgressState } from '../../docker/egress/host-egress.js';
import { isSilent, SILENT_AFTER_SECONDS, type HostLoad } from './host-status.js';

/** What a worker says of the host that it stands beside. */
export interface HostReport {
  readonly id: string;
  /** Most agents on it; undefined as long as that is not known. */
  readonly capacity: number | undefined;
  /** The loopback ports that its agents' gateways take. */
  readonly ports: { readonly first: number; readonly last: number };
  readonly engineAvailable: boolean;
  /** Docker's own id; undefined as long as it has not answered. */
  readonly engineId?: string | undefined;
  /** Where other processes reach its worker; undefined where that does not listen. */
  readonly url?: string | undefined;
  /** Of the disk that its engine keeps volumes on; undefined when that cannot be seen. */
  readonly disk?: { readonly free: number; readonly low: boolean } | undefined;
  /** How it keeps its agents' networks; not known when left out. */
  readonly egress?: EgressState | undefined;
  /** Whether users of its containers are none of the host's; undefined as long as that is not known. */
  readonly userNamespaces?: boolean | undefined;
}

/** The host's name is another engine's: two machines under one name would be sent each other's agents. */
export class HostTakenError extends Error {
  constructor(host: string, why: string) {
    super(`The host name "${host}" ${why}`);
    this.name = 'HostTakenError';
  }
}

// The database's clock: the hosts' own need not agree. Who does not know its engine yet says nothing
// of a host that has one.
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
 * Puts down that the host is there, and how it is. With it goes the lease of its name: to the engine
 * that is the first to come, from then on to no other, unless the first has not been heard of for 45 s
 * and either has no agents or is named by `takeoverFrom`.
 *
 * @param takeoverFrom the engine whose name this one takes over.
 * @returns whether the name is this engine's: not as long as that has not said who it is.
 * @throws HostTakenError
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
  const isOurs = await platform.transaction((db) =>
    takeLease(db, report.id, engineId, takeoverFrom),
  );
  return isOurs ? ((await renew()) ?? false) : false;
}

/**
 * Takes the name from the engine that has it, where that may be.
 *
 * @returns whether it is this engine's now, as far as is known.
 */
async function takeLease(
  db: TenantTransaction,
  id: string,
  engineId: string | undefined,
  takeoverFrom: string | undefined,
): Promise<boolean> {
  // No agent is placed on it meanwhile.
  await db.lock('hosts');
  const host = await db.Host.findByPk(id, { lock: true });
  if (host?.removedAt) throw new HostTakenError(id, 'is being removed: try again in a minute');
  if (!host || host.engineId === null || host.engineId === engineId) return true;
  if (engineId === undefined) return false;
  const load = await hostLoad(db, id);
  if (!load) return false;
  const { agents, unseenSeconds } = load;
  if (!isSilent(load) || (agents > 0 && takeoverFrom !== host.engineId)) {
    throw new HostTakenError(
      id,
      `belongs to another Docker engine (${host.engineId}, with ${agents} agents, heard of ` +
        `${Math.round(unseenSeconds)} s ago): give this machine another name in AGENT_HOST or, if ` +
        `that engine is gone for good, set AGENT_HOST_TAKEOVER=${host.engineId}, which counts from ` +
        `${SILENT_AFTER_SECONDS} s after it was last heard of`,
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

/** Every host with what is on it, by id; for any tenant. */
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

/** What operators are shown of a host beside its load. */
export interface HostDetail extends HostLoad {
  /** Docker's own id; null as long as its engine has not said it. */
  readonly engineId: string | null;
  /** Where other processes reach its worker; null where that does not listen. */
  readonly url: string | null;
  /** Bytes that are free where its engine keeps volumes; null when that is not known. */
  readonly diskFree: number | null;
  readonly egress: EgressState['status'];
  readonly egressReason: string | null;
  /** Whether users of its containers are none of its own; null when that is not known. */
  readonly userNamespaces: boolean | null;
}

/** Every host as operators see it, by id. */
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

/** One of them. */
export async function hostLoad(db: Statements, id: string): Promise<HostLoad | undefined> {
  return (await hostLoads(db)).find((host) => host.id === id);
}

/** Whether a host was removed for good, or is being removed; for any tenant. */
export async function isHostGone(db: Statements, id: string): Promise<boolean> {
  const sql = 'SELECT id FROM host_marks() WHERE id = $id AND removed_at IS NULL';
  return (await db.query(sql, { id })).length === 0;
}
