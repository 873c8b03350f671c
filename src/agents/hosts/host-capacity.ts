import { AGENT_LIMITS } from '../../docker/containers/container-profile.js';

const GIB = 1024 ** 3;

/** Memory reserved for the platform, Docker and the system: bytes at most, and at most this share. */
const OTHERS_BYTES = 2 * GIB;
const OTHERS_SHARE = 1 / 4;

/**
 * Returns how many agents fit at full use of their memory limits. An idle agent uses about a quarter, so an
 * operator may set more and accept that many busy agents can exhaust the host.
 */
export function capacityOf(memoryBytes: number): number {
  const others = Math.min(OTHERS_BYTES, memoryBytes * OTHERS_SHARE);
  return Math.max(1, Math.floor((memoryBytes - others) / AGENT_LIMITS.memoryBytes));
}
