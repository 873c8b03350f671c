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
  /** Variables that anybody may see who can ask Docker. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that Docker is not told of: the runtime reads them from a file of its own. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Files put into the state volume before the container starts: relative path to content. */
  readonly files: Readonly<Record<string, string>>;
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
  /** Of a volume: what has made it, as the database names it. */
  madeBy: `${PREFIX}.made-by`,
  /** Of a container that measures volumes; it is no agent's. */
  measures: `${PREFIX}.measures`,
  /** Of a container by which an agent's files are reached: the agent, whose container it is not. */
  files: `${PREFIX}.files`,
  /** Of such a container that pushes what was committed there, from the agent's network. */
  pushes: `${PREFIX}.pushes`,
  /** Of a volume by which the engine is asked whether it keeps sizes; it is no agent's. */
  tries: `${PREFIX}.tries`,
  /** Of what sets and proves rules of the network; it is no agent's. */
  helps: `${PREFIX}.helps`,
} as const;

/**
 * What Docker writes as `madeBy` on a volume that it makes by itself, because a container is to be
 * made on one that is not there: nothing has ever been in it.
 */
export const MADE_BY_DOCKER = 'docker';

/** Label of an image that tells the version of the runtime in it. */
export const VERSION_LABEL = 'org.opencontainers.image.version';

/** As what the platform's machine is known inside every agent container. */
export const PLATFORM_NAME = 'host.docker.internal';

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

/** Names of what an agent has beside its container: for a while, or left by a killed worker. */
export function spareNames(agentId: string) {
  const name = containerName(agentId);
  return {
    /** The container that the agent goes back to when its new one fails. */
    previous: `${name}-previous`,
    /** The containers by which a volume is copied; they never run. */
    copyFrom: `${name}-copy-from`,
    copyTo: `${name}-copy-to`,
    /** The container by which its files are read and written. */
    files: `${name}-files`,
  };
}
