/** What agents' memories may take of a Docker host's disk. */
export interface DiskLimits {
  /** Bytes that always stay free. */
  readonly floor: number;
  /** Most bytes of one agent's volume that are copied. */
  readonly volume: number;
}
