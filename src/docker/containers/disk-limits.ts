/** Limits in bytes of agents' memories on a Docker host's disk. */
export interface DiskLimits {
  /** Always stays free. */
  readonly floor: number;
  /** Maximum size of one agent's volume. */
  readonly volume: number;
}

/** ext4's default ratio, so that a share of bytes includes an equal share of inodes. */
const BYTES_PER_FILE = 16 * 1024;

/** A bare runtime already needs about that many. */
const LEAST_FILES = 100_000;

/** Returns the most files and folders of a volume with a limit of so many bytes. */
export const filesWithin = (bytes: number): number =>
  Math.max(LEAST_FILES, Math.floor(bytes / BYTES_PER_FILE));
