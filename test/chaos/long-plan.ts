import { Random } from '../support/random.js';
import { OPERATIONS, type OperationName } from './plan.js';

export const HOSTS = ['a', 'b'] as const;
export const SERVICES = ['temporal', 'postgres'] as const;

export type HostName = (typeof HOSTS)[number];
export type Service = (typeof SERVICES)[number];

/** What the whole round is about, for as long as it lasts. */
export const FAULTS = [
  'temporal away',
  'worker without postgres',
  'supervisors terminated',
  'postgres away',
  'memory removed',
  'worker without temporal',
  'both away',
  'worker paused',
  'engine away',
  'temporal paused',
  'api without temporal',
  'postgres paused',
] as const;

/** What becomes of the network on the way to what is away. */
export const MODES = ['cut', 'refuse', 'silence', 'slow'] as const;

/** What happens to the first agent, or to the host that it is on, in the middle of it. */
export const DEEDS = [
  'none',
  'container killed',
  'gateway killed',
  'gateway hung',
  'container paused',
  'worker killed',
  'api killed',
  'engine killed',
] as const;

export type Fault = (typeof FAULTS)[number];
export type Mode = (typeof MODES)[number];
export type Deed = (typeof DEEDS)[number];

/** How a client asks that wants its answer now. */
const MANNERS = ['repeats', 'insists'] as const;

const AGENTS = 4;

/** Operations that make no memory: what is removed must not come back empty by them. */
const WITHOUT_MEMORY = ['start', 'restart', 'repair', 'stop', 'configure'] as const;

const ASKED = Object.keys(OPERATIONS).filter(
  (name) => name !== 'provision' && name !== 'delete',
) as Exclude<OperationName, 'provision' | 'delete'>[]; // its very keys

export interface LongAgentPlan {
  readonly operation: Exclude<OperationName, 'provision'>;
  /** `repeats` the same request, or `insists` with a new one each time. */
  readonly manner: (typeof MANNERS)[number];
  /** Where in the fault it is asked for: 0 is just before it, 1 its end. */
  readonly at: number;
  readonly stopped: boolean;
  readonly broken: boolean;
}

/** One long round: all of it depends on the seed and on how long a fault may last. */
export interface LongPlan {
  readonly seed: number;
  readonly fault: Fault;
  readonly mode: Mode;
  /** The host of what only one has: a worker, an engine. */
  readonly host: HostName;
  readonly lastsMs: number;
  readonly deed: Deed;
  /** Where in the fault it is done. */
  readonly deedAt: number;
  /** Whether the agents take long to come up. */
  readonly slow: boolean;
  readonly agents: readonly LongAgentPlan[];
  /** Where in the fault another agent is created, and configured at once. */
  readonly createAt: number;
}

/** Consecutive seeds go through all faults. */
export function planLongRound(
  seed: number,
  lasts: { readonly shortestMs: number; readonly longestMs: number },
): LongPlan {
  const random = new Random(seed);
  const fault = FAULTS[seed % FAULTS.length] ?? FAULTS[0];
  const { shortestMs, longestMs } = lasts;
  const plan = {
    seed,
    fault,
    mode: random.pick(MODES),
    host: random.pick(HOSTS),
    // As many between 10 and 20 s as between 5 and 10 minutes.
    lastsMs: Math.round(shortestMs * (longestMs / shortestMs) ** random.next()),
    deed: random.pick(DEEDS),
    deedAt: random.next(),
    slow: random.isOneIn(4),
    createAt: random.next(),
  };
  const agents = Array.from({ length: AGENTS }, (_, index): LongAgentPlan => {
    const ofRemoved = fault === 'memory removed' && index === 0;
    const operation = ofRemoved
      ? random.pick(WITHOUT_MEMORY)
      : random.isOneIn(8)
        ? 'delete'
        : random.pick(ASKED);
    return {
      operation,
      manner: random.pick(MANNERS),
      at: random.next(),
      stopped: operation === 'start' || random.isOneIn(4),
      broken: random.isOneIn(4) && (operation === 'update' || operation === 'configure'),
    };
  });
  return { ...plan, agents };
}
