import { Random } from '../support/random.js';

/** Parts of the platform whose death affects every agent. */
export const PARTS = ['worker', 'api', 'temporal', 'postgres', 'dockerd'] as const;

/** Parts whose death affects only one agent. */
const IN_AGENT = ['container', 'gateway'] as const;

export const KILLS = [...PARTS, ...IN_AGENT] as const;

export type Part = (typeof PARTS)[number];
export type Kill = (typeof KILLS)[number];

/** Approximate milliseconds of each operation; the kill occurs at any time within them. */
export const OPERATIONS = {
  provision: 2_500,
  start: 2_000,
  stop: 600,
  restart: 2_500,
  update: 4_000,
  configure: 3_000,
  repair: 37_000,
  'reset-memory': 4_000,
  delete: 1_500,
} as const;

export type OperationName = keyof typeof OPERATIONS;

/** Operations that a stopped agent accepts and that leave it stopped. */
const WHILE_STOPPED: readonly OperationName[] = ['update', 'configure', 'reset-memory', 'delete'];

/** Operations after which an agent may fail to start; they then roll back by themselves. */
const REVERSIBLE: readonly OperationName[] = ['update', 'configure'];

/** Agents in flight when a part is killed, so that one kill interrupts several steps. */
const AGENTS = 3;

export interface AgentPlan {
  /** Milliseconds into the round at which the operation is requested. */
  readonly afterMs: number;
  /** True if the agent is stopped before. */
  readonly stopped: boolean;
  /** True if the operation brings an image or configuration that does not start. */
  readonly broken: boolean;
}

/** One round: the operation, the kill and their times. */
export interface RoundPlan {
  readonly seed: number;
  readonly kill: Kill;
  /** Milliseconds into the round. */
  readonly killAfterMs: number;
  readonly operation: OperationName;
  readonly agents: readonly AgentPlan[];
}

export const isPart = (kill: Kill): kill is Part => PARTS.some((part) => part === kill);

/** Plans a round only from the seed; consecutive seeds cover all kinds of kill. */
export function planRound(seed: number): RoundPlan {
  const random = new Random(seed);
  const kill = KILLS[seed % KILLS.length] ?? 'worker';
  const operation = random.pick(Object.keys(OPERATIONS) as OperationName[]); // exactly its keys
  const lastsMs = OPERATIONS[operation];
  const ofPart = isPart(kill);
  const agents = Array.from({ length: ofPart ? AGENTS : 1 }, () => ({
    afterMs: ofPart ? random.below(Math.min(lastsMs, 3_000) / 2) : 0,
    // A stopped agent has nothing to kill.
    stopped: operation === 'start' || (ofPart && random.isOneIn(4) && isAmong(WHILE_STOPPED)),
    broken: random.isOneIn(4) && isAmong(REVERSIBLE),
  }));
  return { seed, kill, killAfterMs: random.below(lastsMs), operation, agents };

  function isAmong(names: readonly OperationName[]): boolean {
    return names.includes(operation);
  }
}
