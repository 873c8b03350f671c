import { createHash } from 'node:crypto';
import type Docker from 'dockerode';
import {
  AGENT_ROLE,
  type AgentContainerSpec,
  containerName,
  GATEWAY_PORT,
  LABEL,
  MADE_BY_DOCKER,
  PLATFORM_NAME,
  STATE_DIRECTORY,
  volumeName,
} from './container-spec.js';

const MIB = 1024 * 1024;

/** Resource limits of an agent. OpenClaw idles at 650 MB and has needed more than 2 GiB. */
export const AGENT_LIMITS = {
  memoryBytes: 3072 * MIB,
  cpus: 2,
  processes: 512,
  temporaryBytes: 256 * MIB,
  logFileSize: '10m',
  logFiles: 3,
  /** Log lines that Docker has not written yet; output beyond is dropped instead of blocking. */
  logBuffer: '4m',
  /** Per process; Docker's default is a million, which some programs iterate over at startup. */
  openFiles: 16_384,
  /** Relative CPU weight under load; the default of Docker and of host services is 1024. */
  cpuShares: 256,
  /** From 10 to 1000; the default is 500. */
  blockIoWeight: 100,
  /** From -1000 to 1000; the platform's own processes have 0, so an agent is killed before them. */
  oomScore: 500,
} as const;

/** The options of a container that `docker update` changes. */
export const UPDATABLE_OPTIONS = {
  PidsLimit: AGENT_LIMITS.processes,
  CpuShares: AGENT_LIMITS.cpuShares,
  Memory: AGENT_LIMITS.memoryBytes,
  // Equal to memory, so there is no additional swap.
  MemorySwap: AGENT_LIMITS.memoryBytes,
  // A quota instead of NanoCpus, which Docker refuses on a host with fewer cores than the limit.
  CpuPeriod: 100_000,
  CpuQuota: AGENT_LIMITS.cpus * 100_000,
  // Only the supervisor restarts containers.
  RestartPolicy: { Name: 'no' },
} as const;

/** User and group of the runtime in every image: `node` in the official image. */
export const AGENT_UID = 1000;

const SECOND_NS = 1_000_000_000;

// Node is the only program that every runtime image contains.
const HEALTH_CHECK =
  `require('http').get('http://127.0.0.1:${GATEWAY_PORT}/healthz',{timeout:4500},` +
  `r=>process.exit(r.statusCode===200?0:1)).on('error',()=>process.exit(1))` +
  `.on('timeout',()=>process.exit(1))`;

/** The installation that creates containers, networks and volumes, and its extra labels. */
export interface Owner {
  readonly installation: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Returns the labels that mark an object as this installation's and this agent's. */
export function ownershipLabels(
  spec: Pick<AgentContainerSpec, 'agentId' | 'userId'>,
  { installation, labels }: Owner,
): Record<string, string> {
  return {
    ...labels,
    [LABEL.agent]: spec.agentId,
    [LABEL.owner]: spec.userId,
    [LABEL.installation]: installation,
  };
}

export function isOurs(
  labels: Readonly<Record<string, string>> | null | undefined,
  agentId: string,
  { installation }: Pick<Owner, 'installation'>,
): boolean {
  return labels?.[LABEL.agent] === agentId && labels[LABEL.installation] === installation;
}

/**
 * Returns the mount of an agent's volume. Its labels distinguish a volume that Docker creates, because it was
 * missing, from volumes with content.
 */
export function volumeMount(
  spec: Pick<AgentContainerSpec, 'agentId' | 'userId'>,
  owner: Owner,
  mount: { readonly volume: string; readonly target: string; readonly copiesImage: boolean },
): Docker.MountSettings {
  return {
    Type: 'volume',
    Source: mount.volume,
    Target: mount.target,
    VolumeOptions: {
      NoCopy: !mount.copiesImage,
      Labels: { ...ownershipLabels(spec, owner), [LABEL.madeBy]: MADE_BY_DOCKER },
      DriverConfig: { Name: 'local', Options: {} },
    },
  };
}

const limit = (name: string, value: number) => ({ Name: name, Soft: value, Hard: value });

/**
 * Returns the options of an agent's hardened container. The command is left to the image, so that the
 * official, the platform's and an operator's image share one profile.
 */
export function containerOptions(
  spec: AgentContainerSpec,
  owner: Owner,
  runtime?: string,
): Docker.ContainerCreateOptions & { readonly name: string } {
  const name = containerName(spec.agentId);
  const gateway = `${GATEWAY_PORT}/tcp`;
  const options = {
    name,
    // OpenClaw takes over the lease of a killed process only on the same host name.
    Hostname: name,
    Image: spec.image,
    User: `${AGENT_UID}:${AGENT_UID}`,
    Env: Object.entries(spec.env)
      .map(([key, value]) => `${key}=${value}`)
      .sort(),
    Labels: { ...ownershipLabels(spec, owner), [LABEL.port]: String(spec.port) },
    ExposedPorts: { [gateway]: {} },
    Healthcheck: {
      Test: ['CMD', 'node', '-e', HEALTH_CHECK],
      Interval: 30 * SECOND_NS,
      Timeout: 5 * SECOND_NS,
      StartPeriod: 20 * SECOND_NS,
      Retries: 5,
    },
    HostConfig: {
      ...(runtime !== undefined && { Runtime: runtime }),
      // A separate bridge for each agent keeps agents from reaching each other.
      NetworkMode: name,
      PortBindings: { [gateway]: [{ HostIp: '127.0.0.1', HostPort: String(spec.port) }] },
      ExtraHosts: [`${PLATFORM_NAME}:host-gateway`],
      Mounts: [
        volumeMount(spec, owner, {
          volume: volumeName(spec),
          target: STATE_DIRECTORY,
          copiesImage: true,
        }),
      ],
      Tmpfs: { '/tmp': `rw,exec,nosuid,nodev,size=${AGENT_LIMITS.temporaryBytes},mode=1777` },
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      Init: true,
      // The order of the options is part of the fingerprint.
      PidsLimit: UPDATABLE_OPTIONS.PidsLimit,
      // No `nproc` limit: the kernel counts it over all containers with this uid.
      Ulimits: [limit('nofile', AGENT_LIMITS.openFiles), limit('core', 0)],
      OomScoreAdj: AGENT_LIMITS.oomScore,
      CpuShares: UPDATABLE_OPTIONS.CpuShares,
      Memory: UPDATABLE_OPTIONS.Memory,
      MemorySwap: UPDATABLE_OPTIONS.MemorySwap,
      CpuPeriod: UPDATABLE_OPTIONS.CpuPeriod,
      CpuQuota: UPDATABLE_OPTIONS.CpuQuota,
      LogConfig: {
        Type: 'json-file',
        Config: {
          'max-size': AGENT_LIMITS.logFileSize,
          'max-file': String(AGENT_LIMITS.logFiles),
          // A slow disk or endless output must not block the agent or Docker.
          mode: 'non-blocking',
          'max-buffer-size': AGENT_LIMITS.logBuffer,
        },
      },
      RestartPolicy: UPDATABLE_OPTIONS.RestartPolicy,
    },
  };
  const fingerprint = createHash('sha256')
    .update(JSON.stringify({ ...options, subnet: spec.subnet }))
    .digest('hex');
  // Outside the fingerprint, which stays that of containers from before the role.
  const labels = { ...options.Labels, [LABEL.spec]: fingerprint, [LABEL.role]: AGENT_ROLE };
  return { ...options, Labels: labels };
}
