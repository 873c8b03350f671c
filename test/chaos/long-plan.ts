import { Random } from '../support/random.js';
import { OPERATIONS, type OperationName } from './plan.js';

export const HOSTS = ['a', 'b'] as const;
export const SERVICES = ['temporal', 'postgres'] as const;

export type HostName = (typeof HOSTS)[number];
export type Service = (typeof SERVICES)[number];

/** Faults that affect a whole round for its duration. */
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

/** Network behaviour on the way to the unavailable service. */
export const MODES = ['cut', 'refuse', 'silence', 'slow'] as const;

/** Things done in the middle of a fault to the first agent or its host. */
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

/** Ways in which an impatient client sends its requests. */
const MANNERS = ['repeats', 'insists'] as const;

const AGENTS = 4;

/** Operations that create no memory: a removed memory must not be replaced with an empty one. */
const WITHOUT_MEMORY = ['start', 'restart', 'repair', 'stop', 'configure'] as const;

const ASKED = Object.keys(OPERATIONS).filter(
  (name) => name !== 'provision' && name !== 'delete',
) as Exclude<OperationName, 'provision' | 'delete'>[]; // exactly its keys

export interface LongAgentPlan {
  readonly operation: Exclude<OperationName, 'provision'>;
  /** `repeats` the same request, or `insists` with a new one each time. */
  readonly manner: (typeof MANNERS)[number];
  /** Time of the request within the fault: 0 is just before it, 1 its end. */
  readonly at: number;
  readonly stopped: boolean;
  readonly broken: boolean;
}

/** One long round, determined by its seed and the allowed length of a fault. */
export interface LongPlan {
  readonly seed: number;
  readonly fault: Fault;
  readonly mode: Mode;
  /** The host affected if the fault concerns one host's worker or engine. */
  readonly host: HostName;
  readonly lastsMs: number;
  readonly deed: Deed;
  /** Time of the deed within the fault, from 0 to 1. */
  readonly deedAt: number;
  /** True if the agents start slowly. */
  readonly slow: boolean;
  readonly agents: readonly LongAgentPlan[];
  /** Time within the fault at which another agent is created and at once configured. */
  readonly createAt: number;
}

/** Plans a round; consecutive seeds cover all faults. */
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
    // A logarithmic scale: 10 to 20 s is as likely as 5 to 10 minutes.
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
