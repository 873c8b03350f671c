/** Seconds without a word from its worker after which a host is silent: four reports, and more. */
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

/** A host and what is on it now. */
export interface HostLoad {
  readonly id: string;
  /** Most agents on it. */
  readonly capacity: number;
  /** Agents on it, those that are being removed included. */
  readonly agents: number;
  readonly engineAvailable: boolean;
  readonly seenAt: Date;
  /** How long its worker has not been heard of. */
  readonly unseenSeconds: number;
  /** Whether an operator keeps new agents away from it. */
  readonly cordoned: boolean;
  /** Whether it is being removed for good. */
  readonly removing: boolean;
  /** Whether less of its engine's disk is free than its floor. */
  readonly diskLow?: boolean;
  /** Whether it starts no agents, because their networks would be open. */
  readonly egressRefuses?: boolean;
}

/** What keeps new agents away from a host, the worst of it; `ready` when nothing does. */
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

/** Whether its worker has not been heard of for so long that it counts as gone. */
export const isSilent = ({ unseenSeconds }: Pick<HostLoad, 'unseenSeconds'>): boolean =>
  unseenSeconds >= SILENT_AFTER_SECONDS;

/** Places that are left; none where the capacity was lowered below what is there. */
export function freePlaces({ capacity, agents }: Pick<HostLoad, 'capacity' | 'agents'>): number {
  return Math.max(0, capacity - agents);
}

/** The host for the next agent: the ready one with most places left, the first by id of several. */
export function leastLoaded(hosts: readonly HostLoad[]): HostLoad | undefined {
  return hosts
    .filter((host) => statusOf(host) === 'ready' && freePlaces(host) > 0)
    .toSorted((a, b) => freePlaces(b) - freePlaces(a) || (a.id < b.id ? -1 : 1))[0];
}
