import { FairLimiter } from '../../lib/fair-limiter.js';

/** The limits of the work on one Docker host, by its needs. None uses another's slots. */
export interface HostLimiters {
  /** Calls that Docker answers within seconds, or in the time of a stop. */
  readonly calls: FairLimiter;
  /** Each start uses the host's cores. */
  readonly starts: FairLimiter;
  readonly pulls: FairLimiter;
  readonly copies: FairLimiter;
  /** Turns of agents on behalf of their owners, heartbeats included. */
  readonly turns: FairLimiter;
}

/** More concurrent calls would only all time out: they are mostly Docker's own work. */
const CALLS = 40;
const PULLS = 4;
const COPIES = 4;
const TURNS = 20;

/** Returns how many agents start at a time on a host with this number of cores. */
export const startsOn = (cores: number): number => Math.max(4, 2 * cores);

export function hostLimiters(starts: number): HostLimiters {
  return {
    calls: new FairLimiter({ atOnce: CALLS }),
    starts: new FairLimiter({ atOnce: starts }),
    pulls: new FairLimiter({ atOnce: PULLS }),
    copies: new FairLimiter({ atOnce: COPIES }),
    turns: new FairLimiter({ atOnce: TURNS }),
  };
}
