import type Docker from 'dockerode';
import { HELPER_SOCKET, HELPER_VIEWS, type HelperTask } from '../../workspace/helper-protocol.js';
import { AGENT_LIMITS, AGENT_UID, volumeMount } from './container-profile.js';
import { LABEL, STATE_DIRECTORY } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { HelperLine } from './helper-line.js';
import { WORKSPACE_FOLDERS } from './openclaw-config.js';
import { throwAwayOptions } from './throw-away.js';

const MEMORY_MIB = 256;
/** Counts as memory. A sync has its new objects there. */
const TEMPORARY_MIB = 96;

/** Whose workspace, and where it is. */
export interface WorkspaceSpec {
  readonly agentId: string;
  readonly userId: string;
  /** Any that has Node and git. */
  readonly image: string;
  /** The volume with the agent's state. */
  readonly volume: string;
}

interface HelperContainer {
  /** What runs in it. */
  readonly program: string;
  readonly spec: WorkspaceSpec;
  /** What Docker runs it by; its default when left out. */
  readonly runtime: string | undefined;
  /** Milliseconds. */
  readonly idleMs: number;
  /** Of one that pushes: the network that it is on, and what it may reach although it is not public. */
  readonly pushes?: { readonly network: string; readonly allow: readonly string[] };
}

/** Between Docker and the helper's socket. */
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
 * What Docker is asked to make for a helper: by the profile of agents, on the agent's volume alone, without a network.
 * One that pushes is on a network, and may do no more than read.
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
  // As the agent's own container has it.
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
  // An image may ask for a check of its own, and set options that are for the agent.
  return {
    ...options,
    Tty: false,
    Env: ['HOME=/tmp', 'NODE_OPTIONS='],
    Healthcheck: { Test: ['NONE'] },
  };
}

/** @param unusedMs milliseconds after which a connection ends on which nothing is asked. */
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
