import { AGENT_LIMITS } from '../../docker/containers/container-profile.js';

const GIB = 1024 ** 3;

/** Memory reserved for the platform, Docker and the host's system: bytes at most, and at most this share. */
const OTHERS_BYTES = 2 * GIB;
const OTHERS_SHARE = 1 / 4;

/**
 * Returns the number of agents that fit when each uses its full memory limit, at least one. An idle agent
 * uses about a quarter of its limit, so an operator may set a higher number and accept that many busy
 * agents can exhaust the host.
 *
 * @param memoryBytes the host's total memory.
 */
export function capacityOf(memoryBytes: number): number {
  const others = Math.min(OTHERS_BYTES, memoryBytes * OTHERS_SHARE);
  return Math.max(1, Math.floor((memoryBytes - others) / AGENT_LIMITS.memoryBytes));
}
