import { statfs } from 'node:fs/promises';
import { DiskLowError } from './container-errors.js';
import type { DiskLimits } from './disk-limits.js';
import type { DockerClient } from './docker-client.js';

/** The file system that Docker keeps its volumes on, in bytes. */
export interface DiskSpace {
  readonly total: number;
  /** What is left for others than root. */
  readonly free: number;
  /** Less is left than the host's floor: nothing new is put there. */
  readonly low: boolean;
}

/** What agents' memories may take of the disk of their host. */
export class DockerDisk {
  readonly #client: DockerClient;
  readonly #limits: DiskLimits;
  #folder: string | undefined;

  constructor(client: DockerClient, limits: DiskLimits) {
    this.#client = client;
    this.#limits = limits;
  }

  /** Most bytes of one agent's volume. */
  get limit(): number {
    return this.#limits.volume;
  }

  /** Undefined where Docker's folder is not to be seen from here: in another machine, say. */
  async space(): Promise<DiskSpace | undefined> {
    if (!this.#client.isLocal) return undefined;
    this.#folder ??= await this.#dataFolder();
    try {
      const { bsize, blocks, bavail } = await statfs(this.#folder);
      const free = bavail * bsize;
      return { total: blocks * bsize, free, low: free < this.#limits.floor };
    } catch {
      return undefined; // not there, or not for this process
    }
  }

  /**
   * Most bytes that one more volume may take now: its own bound, and what is free above the floor.
   *
   * @throws DiskLowError when nothing is.
   */
  async room(): Promise<number> {
    const space = await this.space();
    if (!space) return this.#limits.volume;
    if (space.low) throw new DiskLowError(space.free, this.#limits.floor);
    return Math.min(this.#limits.volume, space.free - this.#limits.floor);
  }

  async #dataFolder(): Promise<string> {
    const { DockerRootDir: folder } = await this.#client.call<{ readonly DockerRootDir: string }>(
      (docker) => docker.info(),
    );
    return folder;
  }
}
