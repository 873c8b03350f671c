/** Seconds without a report from its worker after which a host is silent: more than four report intervals. */
export const SILENT_AFTER_SECONDS = 45;

export const HOST_STATUSES = [
  'ready',
  'cordoned',
  'disk_low',
  'network_open',
  'engine_unavailable',
  'silent',
  'removing',
] as const;

export type HostStatus = (typeof HOST_STATUSES)[number];

/** A host and its current load. */
export interface HostLoad {
  readonly id: string;
  /** Most agents on the host. */
  readonly capacity: number;
  /** Agents on the host, including those being removed. */
  readonly agents: number;
  readonly engineAvailable: boolean;
  readonly seenAt: Date;
  /** Seconds since the worker's last report. */
  readonly unseenSeconds: number;
  /** True if an operator has excluded the host from placement. */
  readonly cordoned: boolean;
  /** True if the host is being removed for good. */
  readonly removing: boolean;
  /** True if the engine's free disk space is below its floor. */
  readonly diskLow?: boolean;
  /** True if the host starts no agents because their networks would be unprotected. */
  readonly egressRefuses?: boolean;
}

/** Returns the most severe reason that keeps new agents off a host, or `ready`. */
export function statusOf(
  host: Pick<
    HostLoad,
    'engineAvailable' | 'unseenSeconds' | 'cordoned' | 'removing' | 'diskLow' | 'egressRefuses'
  >,
): HostStatus {
  if (host.removing) return 'removing';
  if (isSilent(host)) return 'silent';
  if (!host.engineAvailable) return 'engine_unavailable';
  if (host.diskLow) return 'disk_low';
  if (host.egressRefuses) return 'network_open';
  return host.cordoned ? 'cordoned' : 'ready';
}

/** Reports whether the host's worker has been silent long enough to count as gone. */
export const isSilent = ({ unseenSeconds }: Pick<HostLoad, 'unseenSeconds'>): boolean =>
  unseenSeconds >= SILENT_AFTER_SECONDS;

/** Returns the number of free places; zero if the capacity was lowered below the number of agents. */
export function freePlaces({ capacity, agents }: Pick<HostLoad, 'capacity' | 'agents'>): number {
  return Math.max(0, capacity - agents);
}

/**
 * Returns the host for the next agent: the ready host with the most free places, and among equals the
 * first by id.
 */
export function leastLoaded(hosts: readonly HostLoad[]): HostLoad | undefined {
  return hosts
    .filter((host) => statusOf(host) === 'ready' && freePlaces(host) > 0)
    .toSorted((a, b) => freePlaces(b) - freePlaces(a) || (a.id < b.id ? -1 : 1))[0];
}
