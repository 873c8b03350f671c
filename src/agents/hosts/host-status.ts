/** Seconds without a report after which a host is silent: more than four report intervals. */
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

export interface HostLoad {
  readonly id: string;
  readonly capacity: number;
  /** Agents on the host, including those being removed. */
  readonly agents: number;
  readonly engineAvailable: boolean;
  readonly seenAt: Date;
  readonly unseenSeconds: number;
  /** Excluded from placement by an operator. */
  readonly cordoned: boolean;
  /** Being removed permanently. */
  readonly removing: boolean;
  /** The engine's free disk space is below its floor. */
  readonly diskLow?: boolean;
  /** Starts no agents because their networks would be unprotected. */
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

export const isSilent = ({ unseenSeconds }: Pick<HostLoad, 'unseenSeconds'>): boolean =>
  unseenSeconds >= SILENT_AFTER_SECONDS;

/** Returns the number of free places; the capacity may be below the number of agents. */
export function freePlaces({ capacity, agents }: Pick<HostLoad, 'capacity' | 'agents'>): number {
  return Math.max(0, capacity - agents);
}

/** Returns the ready host with the most free places, and among equals the first by id. */
export function leastLoaded(hosts: readonly HostLoad[]): HostLoad | undefined {
  return hosts
    .filter((host) => statusOf(host) === 'ready' && freePlaces(host) > 0)
    .toSorted((a, b) => freePlaces(b) - freePlaces(a) || (a.id < b.id ? -1 : 1))[0];
}
