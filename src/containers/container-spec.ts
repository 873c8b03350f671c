/** What an agent's container, network and volume are to be. */
export interface AgentContainerSpec {
  readonly agentId: string;
  readonly userId: string;
  readonly image: string;
  /** The volume with its state; named like the container when left out. */
  readonly volume?: string | undefined;
  /** Loopback port of the host that leads to the agent's gateway. */
  readonly port: number;
  /** The agent's own network, such as `10.231.0.16/28`. */
  readonly subnet: string;
  readonly env: Readonly<Record<string, string>>;
  /** Files put into the state volume before the container starts: relative path to content. */
  readonly files: Readonly<Record<string, string>>;
  /** More labels for container, network and volume. */
  readonly labels?: Readonly<Record<string, string>>;
}

export type ContainerStatus =
  'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead';

/** A container as Docker sees it now. */
export interface ContainerState {
  readonly id: string;
  readonly status: ContainerStatus;
  /** ISO 8601; undefined when it never ran. */
  readonly startedAt: string | undefined;
  readonly finishedAt: string | undefined;
  /** Undefined while running and when it never ran. */
  readonly exitCode: number | undefined;
  readonly oomKilled: boolean;
  /** Docker's own health check; undefined when it has none or does not run. */
  readonly health: 'starting' | 'healthy' | 'unhealthy' | undefined;
  /** The image as it was named at creation. */
  readonly image: string;
  /** Version of the runtime in the image, where its labels say it. */
  readonly runtimeVersion: string | undefined;
  /** The host port it was created for. */
  readonly port: number | undefined;
}

/** One container in a list. */
export interface ContainerSummary {
  readonly id: string;
  readonly agentId: string;
  readonly userId: string;
  readonly status: ContainerStatus;
  readonly image: string;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** What a running container uses now. */
export interface ContainerStats {
  /** 100 is one core fully used. */
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  readonly memoryLimitBytes: number;
  readonly networkReceivedBytes: number;
  readonly networkSentBytes: number;
  readonly processes: number;
  /** ISO 8601. */
  readonly readAt: string;
}

/** One line that an agent wrote. A longer line comes in pieces of at most 16 KiB. */
export interface LogLine {
  /** RFC 3339 with nanoseconds, as Docker gives it. */
  readonly timestamp: string;
  readonly stream: 'stdout' | 'stderr';
  readonly line: string;
  /** Pass as `since` to go on after exactly this line. */
  readonly cursor: string;
}

export interface LogOptions {
  /** The cursor of the last line seen: only what follows it is given. */
  readonly since?: string | undefined;
  /** Without `since`: begin with the last so many lines. */
  readonly tail?: number | undefined;
  /** Go on until the container stops or `signal` aborts. */
  readonly follow?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Prefix of every label of ours. */
const PREFIX = 'agent-platform';

export const LABEL = {
  agent: `${PREFIX}.agent`,
  owner: `${PREFIX}.owner`,
  installation: `${PREFIX}.installation`,
  /** Fingerprint of the specification a container was made from. */
  spec: `${PREFIX}.spec`,
  port: `${PREFIX}.port`,
} as const;

/** Label of an image that tells the version of the runtime in it. */
export const VERSION_LABEL = 'org.opencontainers.image.version';

/** The gateway's port inside every agent container. */
export const GATEWAY_PORT = 18789;

/** Home of the runtime's user (uid 1000): the agent's volume is mounted here. */
export const STATE_DIRECTORY = '/home/node';

/** Name of an agent's container and network, and of its first volume. */
export function containerName(agentId: string): string {
  return `agent-${agentId}`;
}

/** Name of the volume that holds an agent's state. */
export function volumeName(spec: Pick<AgentContainerSpec, 'agentId' | 'volume'>): string {
  return spec.volume ?? containerName(spec.agentId);
}
