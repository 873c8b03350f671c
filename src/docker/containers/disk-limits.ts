/** What agents' memories may take of a Docker host's disk. */
export interface DiskLimits {
  /** Bytes that always stay free. */
  readonly floor: number;
  /** Most bytes of one agent's volume. */
  readonly volume: number;
}

/** As many bytes for each inode as ext4 is made with: who has their share of bytes has that of inodes. */
const BYTES_PER_FILE = 16 * 1024;

/** Fewer than a bare runtime has are no bound for anybody. */
const LEAST_FILES = 100_000;

/** Most files and folders of a volume that may take so many bytes. */
export const filesWithin = (bytes: number): number =>
  Math.max(LEAST_FILES, Math.floor(bytes / BYTES_PER_FILE));
