import { createHash } from 'node:crypto';
import type Docker from 'dockerode';
import {
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

/** What one agent may use. OpenClaw idles at 650 MB and has been seen to need more than 2 GiB. */
export const AGENT_LIMITS = {
  memoryBytes: 3072 * MIB,
  cpus: 2,
  processes: 512,
  temporaryBytes: 256 * MIB,
  logFileSize: '10m',
  logFiles: 3,
  /** Of lines that Docker has not written yet: what comes faster is dropped, and nothing waits. */
  logBuffer: '4m',
  /** Per process; Docker's own default is a million, which some programs walk through at their start. */
  openFiles: 16_384,
  /** Docker's default, and that of every service of the host, is 1024: these count when it is busy. */
  cpuShares: 256,
  /** From 10 to 1000; the default is 500. */
  blockIoWeight: 100,
  /** From -1000 to 1000; the platform's own processes are at 0, and an agent ends before them. */
  oomScore: 500,
} as const;

/** User and group of the runtime in every image: `node` in the official one. */
export const AGENT_UID = 1000;

const SECOND_NS = 1_000_000_000;

// Node is the one program that every runtime image has.
const HEALTH_CHECK =
  `require('http').get('http://127.0.0.1:${GATEWAY_PORT}/healthz',{timeout:4500},` +
  `r=>process.exit(r.statusCode===200?0:1)).on('error',()=>process.exit(1))` +
  `.on('timeout',()=>process.exit(1))`;

/** Who makes containers, networks and volumes, and what else is put on their labels. */
export interface Owner {
  readonly installation: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Labels that make a container, network or volume ours, and this agent's. */
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

/** Whether labels say that a thing is this installation's, for this agent. */
export function isOurs(
  labels: Readonly<Record<string, string>> | null | undefined,
  agentId: string,
  { installation }: Pick<Owner, 'installation'>,
): boolean {
  return labels?.[LABEL.agent] === agentId && labels[LABEL.installation] === installation;
}

/**
 * A volume of the agent's in one of its containers. Docker makes one that is not there: by its labels
 * it is told from those that hold something.
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
 * The hardened container of one agent. The image starts its own gateway; nothing about the command
 * is set here, so that the official image, ours and an operator's all run by the same profile.
 *
 * @param runtime what Docker runs it by; its default when left out.
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
    // The same in the next container: OpenClaw takes the lease of one that was killed only on its own host.
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
      // A bridge of its own for each agent is what keeps agents from reaching each other.
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
      PidsLimit: AGENT_LIMITS.processes,
      // Not `nproc`: the kernel counts that over all containers whose processes have this uid.
      Ulimits: [limit('nofile', AGENT_LIMITS.openFiles), limit('core', 0)],
      OomScoreAdj: AGENT_LIMITS.oomScore,
      CpuShares: AGENT_LIMITS.cpuShares,
      Memory: AGENT_LIMITS.memoryBytes,
      // The same as memory: no swap on top of it.
      MemorySwap: AGENT_LIMITS.memoryBytes,
      // As a quota: NanoCpus is refused on a host with fewer cores than the limit.
      CpuPeriod: 100_000,
      CpuQuota: AGENT_LIMITS.cpus * 100_000,
      LogConfig: {
        Type: 'json-file',
        Config: {
          'max-size': AGENT_LIMITS.logFileSize,
          'max-file': String(AGENT_LIMITS.logFiles),
          // A disk that is slow, or an agent that writes without end, must not stop it or Docker.
          mode: 'non-blocking',
          'max-buffer-size': AGENT_LIMITS.logBuffer,
        },
      },
      // The supervisor alone restarts.
      RestartPolicy: { Name: 'no' },
    },
  };
  const fingerprint = createHash('sha256')
    .update(JSON.stringify({ ...options, subnet: spec.subnet }))
    .digest('hex');
  return { ...options, Labels: { ...options.Labels, [LABEL.spec]: fingerprint } };
}
