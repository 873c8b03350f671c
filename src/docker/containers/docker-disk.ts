import { statfs } from 'node:fs/promises';
import { DiskLowError } from './container-errors.js';
import type { DiskLimits } from './disk-limits.js';
import type { DockerClient } from './docker-client.js';

/** The file system of Docker's volumes, in bytes. */
export interface DiskSpace {
  readonly total: number;
  /** Free for users other than root. */
  readonly free: number;
  /** Less is free than the host's floor; nothing new may be stored. */
  readonly low: boolean;
}

export class DockerDisk {
  readonly #client: DockerClient;
  readonly #limits: DiskLimits;
  #folder: string | undefined;

  constructor(client: DockerClient, limits: DiskLimits) {
    this.#client = client;
    this.#limits = limits;
  }

  /** Bytes of an agent's volume at most. */
  get limit(): number {
    return this.#limits.volume;
  }

  /** Measures the file system; undefined if Docker's folder is not visible here, as on another machine. */
  async space(): Promise<DiskSpace | undefined> {
    if (!this.#client.isLocal) return undefined;
    this.#folder ??= await this.#dataFolder();
    try {
      const { bsize, blocks, bavail } = await statfs(this.#folder);
      const free = bavail * bsize;
      return { total: blocks * bsize, free, low: free < this.#limits.floor };
    } catch {
      return undefined; // missing, or not readable by this process
    }
  }

  /**
   * Returns the bytes for a new volume: the limit, or the space free above the floor. @throws DiskLowError
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
