import { existsSync } from 'node:fs';
import { release } from 'node:os';
import type { DockerClient } from './docker-client.js';
import type { FirstIds } from './tar-owners.js';

export interface DockerEngine {
  /** The daemon's id, stored with its data. */
  readonly id: string | undefined;
  /** Total memory of the machine. */
  readonly memoryBytes: number;
  readonly runtimes: readonly string[];
  /** Containers may have a weight for disk I/O. */
  readonly weighsDisks: boolean;
  /** The host ids that are root in containers; undefined without user namespaces. */
  readonly usersFrom: FirstIds | undefined;
}

interface Info {
  readonly ID?: string;
  readonly MemTotal: number;
  readonly Runtimes?: Readonly<Record<string, unknown>>;
  readonly CgroupVersion?: string;
  readonly KernelVersion: string;
  readonly SecurityOptions?: readonly string[] | null;
  readonly DockerRootDir: string;
}

export async function readEngine(client: DockerClient, timeoutMs?: number): Promise<DockerEngine> {
  const info = await client.call<Info>((docker) => docker.info(), timeoutMs);
  return {
    id: info.ID || undefined,
    memoryBytes: info.MemTotal,
    runtimes: Object.keys(info.Runtimes ?? {}),
    weighsDisks: weighsDisks(info),
    usersFrom: usersFrom(info),
  };
}

/** Returns the first ids of the user namespace, which an engine encodes in the name of its data folder. */
function usersFrom({ SecurityOptions: options, DockerRootDir: folder }: Info) {
  if (!options?.some((option) => option.split(',').includes('name=userns'))) return undefined;
  const [, uid, gid] = /\/(\d+)\.(\d+)\/?$/.exec(folder) ?? [];
  return { uid: Number(uid ?? 0), gid: Number(gid ?? 0) };
}

/** A systemd service's control files for I/O weight, on kernels that support it. */
const WEIGHTS = ['io.weight', 'io.bfq.weight'].map((name) => `/sys/fs/cgroup/system.slice/${name}`);

/**
 * Reports whether I/O weights work. With cgroup 1 Docker drops an unsupported weight with a warning. With
 * cgroup 2 the container would fail to start, so only the local kernel is trusted.
 */
function weighsDisks({ CgroupVersion: version, KernelVersion: kernel }: Info): boolean {
  return version === '1' || (kernel === release() && WEIGHTS.some((file) => existsSync(file)));
}
