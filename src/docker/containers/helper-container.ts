import type Docker from 'dockerode';
import { HELPER_SOCKET, HELPER_VIEWS, type HelperTask } from '../../workspace/helper-protocol.js';
import { AGENT_LIMITS, AGENT_UID, volumeMount } from './container-profile.js';
import { LABEL, STATE_DIRECTORY } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { HelperLine } from './helper-line.js';
import { WORKSPACE_FOLDERS } from './openclaw-config.js';
import { throwAwayOptions } from './throw-away.js';

const MEMORY_MIB = 256;
/** Counted as memory; a sync stores its new objects in the temporary file system. */
const TEMPORARY_MIB = 96;

export interface WorkspaceSpec {
  readonly agentId: string;
  readonly userId: string;
  /** Any image with Node and git. */
  readonly image: string;
  readonly volume: string;
}

interface HelperContainer {
  readonly program: string;
  readonly spec: WorkspaceSpec;
  /** The container runtime; Docker's default if undefined. */
  readonly runtime: string | undefined;
  /** Milliseconds without requests until the helper ends. */
  readonly idleMs: number;
  /** For a helper that pushes: its network, and the private addresses that it may reach. */
  readonly pushes?: { readonly network: string; readonly allow: readonly string[] };
}

/** Relays between Docker and the helper's socket. */
const RELAY = `
const deadline = Date.now() + 15_000;
(function connect() {
  const socket = require('net').connect('${HELPER_SOCKET}');
  let isOpen = false;
  socket.on('connect', () => {
    isOpen = true;
    process.stdin.pipe(socket).pipe(process.stdout);
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    if (isOpen || Date.now() > deadline) process.exit();
    setTimeout(connect, 10);
  });
})();
`;

/**
 * Returns a helper's options: the agents' profile, only the agent's volume, no network. A helper that pushes
 * has a network but read-only access.
 */
export function helperContainer(
  client: DockerClient,
  { idleMs, program, pushes, runtime, spec }: HelperContainer,
): Docker.ContainerCreateOptions {
  const { agentId, image, userId, volume } = spec;
  const { installation, labels } = client;
  const task: HelperTask = {
    volume: STATE_DIRECTORY,
    within: WORKSPACE_FOLDERS,
    views: HELPER_VIEWS,
    idleMs,
    socket: HELPER_SOCKET,
    ...(pushes && { allow: pushes.allow }),
  };
  const nofile = { Name: 'nofile', Soft: 1_024, Hard: 1_024 };
  // Same mount as in the agent's own container.
  const mount = volumeMount(spec, client, { volume, target: STATE_DIRECTORY, copiesImage: true });
  const options = throwAwayOptions({
    image,
    script: program,
    task,
    user: `${AGENT_UID}:${AGENT_UID}`,
    labels: {
      ...labels,
      [LABEL.installation]: installation,
      [LABEL.files]: agentId,
      [LABEL.owner]: userId,
      ...(pushes && { [LABEL.pushes]: agentId }),
    },
    memoryMiB: MEMORY_MIB,
    needs: {
      ...(runtime !== undefined && { Runtime: runtime }),
      AutoRemove: true,
      Init: true,
      NetworkMode: pushes?.network ?? 'none',
      Mounts: [pushes ? { ...mount, ReadOnly: true } : mount],
      Tmpfs: { '/tmp': `rw,noexec,nosuid,nodev,size=${TEMPORARY_MIB * 1024 * 1024},mode=1777` },
      Ulimits: [nofile, { Name: 'core', Soft: 0, Hard: 0 }],
      OomScoreAdj: AGENT_LIMITS.oomScore,
      CpuShares: AGENT_LIMITS.cpuShares,
      CpuPeriod: 100_000,
      CpuQuota: AGENT_LIMITS.cpus * 100_000,
      LogConfig: { Type: 'none', Config: {} },
    },
  });
  // An image may define a health check and options meant for the agent.
  return {
    ...options,
    Tty: false,
    Env: ['HOME=/tmp', 'NODE_OPTIONS='],
    Healthcheck: { Test: ['NONE'] },
  };
}

/** Connects to a helper; the connection closes after `unusedMs` without requests. */
export async function connectToHelper(
  client: DockerClient,
  id: string,
  unusedMs: number,
): Promise<HelperLine> {
  const stream = await client.call(async (docker, bound) => {
    const exec = await docker.getContainer(id).exec({
      Cmd: ['node', '-e', RELAY],
      AttachStdin: true,
      AttachStdout: true,
      ...bound,
    });
    return exec.start({ hijack: true, stdin: true, ...bound });
  });
  return new HelperLine(id, stream, unusedMs);
}
