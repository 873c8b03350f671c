import { Turns } from '../../lib/turns.js';

/**
 * What goes on at a time on one Docker host, by what it needs. None of them takes the turns of
 * another, and no owner has more than half of any.
 */
export interface HostTurns {
  /** Calls that Docker answers within seconds, or in the time that a stop takes. */
  readonly calls: Turns;
  /** Agents that are starting: they want the host's cores. */
  readonly starts: Turns;
  /** Images that are pulled. */
  readonly pulls: Turns;
  /** Memories that are copied. */
  readonly copies: Turns;
  /** Agents that are asked for their heartbeats, each for a minute at most. */
  readonly heartbeats: Turns;
}

/** More calls at once only make each of them time out: they are mostly Docker's own work. */
const CALLS = 40;
const PULLS = 4;
const COPIES = 4;
const HEARTBEATS = 20;

/** How many agents start at a time on a host with so many cores, which each of them wants for itself. */
export const startsOn = (cores: number): number => Math.max(4, 2 * cores);

/** @param starts agents that start at a time. */
export function hostTurns(starts: number): HostTurns {
  return {
    calls: new Turns(CALLS),
    starts: new Turns(starts),
    pulls: new Turns(PULLS),
    copies: new Turns(COPIES),
    heartbeats: new Turns(HEARTBEATS),
  };
}
