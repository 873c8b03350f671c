import { Turns } from '../../lib/turns.js';

/**
 * Concurrency limits of one Docker host, by the resource needed. The limits are independent, and no owner
 * may use more than half of any.
 */
export interface HostTurns {
  /** Calls that take Docker a few seconds, or the time of a stop. */
  readonly calls: Turns;
  /** Starting agents, which need the host's cores. */
  readonly starts: Turns;
  /** Image pulls. */
  readonly pulls: Turns;
  /** Copies of agents' memories. */
  readonly copies: Turns;
  /** Heartbeats of agents, a minute each at most. */
  readonly heartbeats: Turns;
}

/** More concurrent calls only time out, because Docker itself is the bottleneck. */
const CALLS = 40;
const PULLS = 4;
const COPIES = 4;
const HEARTBEATS = 20;

/**
 * Returns how many agents may start at a time on a host with this many cores; each start can use a whole
 * core.
 */
export const startsOn = (cores: number): number => Math.max(4, 2 * cores);

/**
 * Returns the limits of a host.
 *
 * @param starts maximum number of agents starting at a time.
 */
export function hostTurns(starts: number): HostTurns {
  return {
    calls: new Turns(CALLS),
    starts: new Turns(starts),
    pulls: new Turns(PULLS),
    copies: new Turns(COPIES),
    heartbeats: new Turns(HEARTBEATS),
  };
}
