import { existsSync } from 'node:fs';
import { release } from 'node:os';
import type { DockerClient } from './docker-client.js';
import type { FirstIds } from './tar-owners.js';

/** A Docker daemon and the machine that it runs on. */
export interface DockerEngine {
  /** Kept with its data. */
  readonly id: string | undefined;
  /** All that the machine has. */
  readonly memoryBytes: number;
  /** Names of the programs that it can run containers by. */
  readonly runtimes: readonly string[];
  /** Whether a container may be made with a weight of its use of disks. */
  readonly weighsDisks: boolean;
  /** The host's ids that are root's in its containers; undefined where those have no users of their own. */
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

/** @throws DockerUnavailableError, DockerRefusedError */
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

/** An engine with user namespaces keeps its data in a folder that is named by their first ids. */
function usersFrom({ SecurityOptions: options, DockerRootDir: folder }: Info) {
  if (!options?.some((option) => option.split(',').includes('name=userns'))) return undefined;
  const [, uid, gid] = /\/(\d+)\.(\d+)\/?$/.exec(folder) ?? [];
  return { uid: Number(uid ?? 0), gid: Number(gid ?? 0) };
}

/** What a service of systemd's has for it, in kernels that can. */
const WEIGHTS = ['io.weight', 'io.bfq.weight'].map((name) => `/sys/fs/cgroup/system.slice/${name}`);

/**
 * With control groups of version 1 Docker looks whether the kernel can, and leaves the weight out with a
 * warning. With version 2 it does not look, and the container would not start where the kernel cannot:
 * so the weight is for engines on the kernel that is seen from here.
 */
function weighsDisks({ CgroupVersion: version, KernelVersion: kernel }: Info): boolean {
  return version === '1' || (kernel === release() && WEIGHTS.some((file) => existsSync(file)));
}
