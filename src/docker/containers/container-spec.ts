/** The desired container, network and volume of an agent. */
export interface AgentContainerSpec {
  readonly agentId: string;
  readonly userId: string;
  readonly image: string;
  /** The volume with the agent's state; the container's name by default. */
  readonly volume?: string | undefined;
  /** The host's loopback port that forwards to the agent's gateway. */
  readonly port: number;
  /** The agent's own network, such as `10.231.0.16/28`. */
  readonly subnet: string;
  /** Variables visible to all users of Docker. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables hidden from Docker: the runtime reads them from a file. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Files in the state volume before the container starts: relative path to content. */
  readonly files: Readonly<Record<string, string>>;
  /** The platform's skills in the state volume, by name; those of earlier specifications are removed. */
  readonly skills?: Readonly<Record<string, string>>;
}

const PREFIX = 'agent-platform';

export const LABEL = {
  agent: `${PREFIX}.agent`,
  /** `AGENT_ROLE` on the container in which an agent runs; its other containers have no role. */
  role: `${PREFIX}.role`,
  owner: `${PREFIX}.owner`,
  installation: `${PREFIX}.installation`,
  /** Fingerprint of the specification that a container was created from. */
  spec: `${PREFIX}.spec`,
  port: `${PREFIX}.port`,
  /** On a volume: its maker, as named in the database. */
  madeBy: `${PREFIX}.made-by`,
  /** On a container that measures volumes and belongs to no agent. */
  measures: `${PREFIX}.measures`,
  /** On a helper container with access to an agent's files: the agent's id. */
  files: `${PREFIX}.files`,
  /** On a helper container that pushes commits over the agent's network. */
  pushes: `${PREFIX}.pushes`,
  /** On a volume that tests the engine for quotas and belongs to no agent. */
  tries: `${PREFIX}.tries`,
  /** On a container that sets and verifies network rules and belongs to no agent. */
  helps: `${PREFIX}.helps`,
} as const;

export const AGENT_ROLE = 'agent';

/** Value of `madeBy` on a volume that Docker itself created, empty, because a container needed it. */
export const MADE_BY_DOCKER = 'docker';

export const VERSION_LABEL = 'org.opencontainers.image.version';

/** Host name of the platform's machine inside every agent container. */
export const PLATFORM_NAME = 'host.docker.internal';

/** The gateway's port inside every agent container. */
export const GATEWAY_PORT = 18789;

/** Home of the runtime's user (uid 1000); mount point of the agent's volume. */
export const STATE_DIRECTORY = '/home/node';

/** Returns the name of an agent's container and network, and of its first volume. */
export function containerName(agentId: string): string {
  return `agent-${agentId}`;
}

export function volumeName(spec: Pick<AgentContainerSpec, 'agentId' | 'volume'>): string {
  return spec.volume ?? containerName(spec.agentId);
}

/** Returns the names of an agent's temporary containers, some left behind by a killed worker. */
export function spareNames(agentId: string) {
  const name = containerName(agentId);
  return {
    /** The container that is restored if its replacement fails. */
    previous: `${name}-previous`,
    /** The containers for copying a volume; they never run. */
    copyFrom: `${name}-copy-from`,
    copyTo: `${name}-copy-to`,
    /** The container for reading and writing the agent's files. */
    files: `${name}-files`,
  };
}
