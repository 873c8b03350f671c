import { AGENT_LIMITS } from '../../docker/containers/container-profile.js';

const GIB = 1024 ** 3;

/** Most that is left to the platform, to Docker and to the system of a host, and most of its memory. */
const OTHERS_BYTES = 2 * GIB;
const OTHERS_SHARE = 1 / 4;

/**
 * How many agents a host can bear when each takes all the memory that it may: none takes another's, and
 * none that of the platform. At least one. An agent that rests takes about a quarter of its limit, so who
 * accepts that many at work at a time can bring each other down may set a higher number.
 *
 * @param memoryBytes all that the host has.
 */
export function capacityOf(memoryBytes: number): number {
  const others = Math.min(OTHERS_BYTES, memoryBytes * OTHERS_SHARE);
  return Math.max(1, Math.floor((memoryBytes - others) / AGENT_LIMITS.memoryBytes));
}
