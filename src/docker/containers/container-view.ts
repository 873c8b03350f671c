import type Docker from 'dockerode';
import { LABEL, VERSION_LABEL } from './container-spec.js';

export type ContainerStatus =
  | 'created'
  | 'running'
  | 'paused'
  | 'restarting'
  | 'removing'
  | 'exited'
  | 'dead';

export interface ContainerState {
  readonly id: string;
  readonly status: ContainerStatus;
  /** ISO 8601; undefined if the container never ran. */
  readonly startedAt: string | undefined;
  readonly finishedAt: string | undefined;
  /** Undefined while the container runs, or if it never ran. */
  readonly exitCode: number | undefined;
  /** The last end was for lack of memory. */
  readonly oomKilled: boolean;
  /** Docker's own health check; undefined without a check or while stopped. */
  readonly health: 'starting' | 'healthy' | 'unhealthy' | undefined;
  /** The image name used at creation. */
  readonly image: string;
  /** Version of the runtime, if the image's labels name it. */
  readonly runtimeVersion: string | undefined;
  /** The host port assigned at creation. */
  readonly port: number | undefined;
  readonly volumes: readonly string[];
}

export type ContainerSummary = ReturnType<typeof containerSummary>;

export type ContainerStats = ReturnType<typeof containerStats>;

export type ContainerReading = ReturnType<typeof containerReading>;

/** Cumulative since the container's start. */
export type ContainerWork = ReturnType<typeof containerWork>;

/** A program killed by SIGKILL had no chance to shut down. */
export const SIGKILL_EXIT_CODE = 137;

/** Docker's value for "never". */
const NEVER = '0001-01-01T00:00:00Z';

const STATUSES: readonly ContainerStatus[] = [
  'created',
  'running',
  'paused',
  'restarting',
  'removing',
  'exited',
];

export function containerState(
  info: Docker.ContainerInspectInfo,
  oomKilled: boolean,
): ContainerState {
  const { State: state, Config: config } = info;
  const status = containerStatus(state.Status);
  // Docker calls a stopped container unhealthy, so health counts only while it runs.
  const health = state.Running ? state.Health?.Status : undefined;
  return {
    id: info.Id,
    status,
    startedAt: time(state.StartedAt),
    finishedAt: time(state.FinishedAt),
    exitCode: status === 'exited' || status === 'dead' ? state.ExitCode : undefined,
    oomKilled,
    health:
      health === 'starting' || health === 'healthy' || health === 'unhealthy' ? health : undefined,
    image: config.Image,
    // Containers inherit the labels of their image.
    runtimeVersion: config.Labels[VERSION_LABEL],
    port: portOf(info),
    volumes: info.Mounts.flatMap(({ Type: type, Name: name }) =>
      type === 'volume' && name !== undefined ? [name] : [],
    ),
  };
}

/** Returns the host port assigned at creation. */
export function portOf({ Config: config }: Docker.ContainerInspectInfo): number | undefined {
  const port = config.Labels[LABEL.port];
  return port === undefined ? undefined : Number(port);
}

export function containerSummary(info: Docker.ContainerInfo) {
  return {
    id: info.Id,
    agentId: info.Labels[LABEL.agent] ?? '',
    userId: info.Labels[LABEL.owner] ?? '',
    status: containerStatus(info.State),
    image: info.Image,
    createdAt: new Date(info.Created * 1000).toISOString(),
  };
}

/** Computes the figures of `docker stats`: 100 % is one core fully used. */
export function containerStats(stats: Docker.ContainerStats) {
  const { cpu_stats: cpu, precpu_stats: before } = stats;
  const used = cpu.cpu_usage.total_usage - before.cpu_usage.total_usage;
  const elapsed = (cpu.system_cpu_usage ?? 0) - (before.system_cpu_usage ?? 0);
  const cores = cpu.online_cpus ?? cpu.cpu_usage.percpu_usage?.length ?? 1;
  return {
    cpuPercent: elapsed > 0 && used > 0 ? (used / elapsed) * cores * 100 : 0,
    ...memoryAndNetwork(stats),
    processes: stats.pids_stats?.current ?? 0,
    readAt: new Date(stats.read).toISOString(),
  };
}

function memoryAndNetwork({ memory_stats: memory, networks: all }: Docker.ContainerStats) {
  // Reclaimable file cache is not "used"; cgroups 1 and 2 name it differently.
  const cache = memory.stats?.total_inactive_file ?? memory.stats?.inactive_file ?? 0;
  const networks = Object.values(all ?? {});
  return {
    memoryBytes: Math.max(0, (memory.usage ?? 0) - cache),
    memoryLimitBytes: memory.limit ?? 0,
    networkReceivedBytes: networks.reduce((sum, network) => sum + network.rx_bytes, 0),
    networkSentBytes: networks.reduce((sum, network) => sum + network.tx_bytes, 0),
  };
}

/** Returns memory in use now, and milliseconds of one core and network bytes since the container's start. */
export function containerReading(stats: Docker.ContainerStats) {
  return {
    cpuMs: stats.cpu_stats.cpu_usage.total_usage / 1e6,
    ...memoryAndNetwork(stats),
    /** Unix milliseconds. */
    readAt: Date.parse(stats.read),
  };
}

/** Returns milliseconds of one core, and bytes read, written, sent and received. */
export function containerWork({
  cpu_stats: cpu,
  blkio_stats: disk,
  networks,
}: Docker.ContainerStats) {
  const blocks = disk?.io_service_bytes_recursive ?? [];
  const bytes = [
    ...Object.values(networks ?? {}).flatMap(({ rx_bytes, tx_bytes }) => [rx_bytes, tx_bytes]),
    ...blocks.map(({ value }) => value),
  ];
  return {
    cpuMs: cpu.cpu_usage.total_usage / 1e6,
    bytes: bytes.reduce((sum, each) => sum + each, 0),
  };
}

function containerStatus(status: string): ContainerStatus {
  return STATUSES.find((known) => known === status) ?? 'dead';
}

function time(value: string): string | undefined {
  return value === NEVER ? undefined : new Date(value).toISOString();
}
