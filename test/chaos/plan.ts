import { Random } from '../support/random.js';

/** Parts of the platform: their death meets every agent. */
export const PARTS = ['worker', 'api', 'temporal', 'postgres', 'dockerd'] as const;

/** What is killed in one agent alone. */
const IN_AGENT = ['container', 'gateway'] as const;

export const KILLS = [...PARTS, ...IN_AGENT] as const;

export type Part = (typeof PARTS)[number];
export type Kill = (typeof KILLS)[number];

/** About how many milliseconds each operation takes: the kill comes at any time within. */
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

/** Operations that can be asked of a stopped agent, and leave it stopped. */
const WHILE_STOPPED: readonly OperationName[] = ['update', 'configure', 'reset-memory', 'delete'];

/** Operations that can bring what does not come up, and then go back by themselves. */
const REVERSIBLE: readonly OperationName[] = ['update', 'configure'];

/** Agents under way when a part is killed, so that one kill meets several points of the way. */
const AGENTS = 3;

export interface AgentPlan {
  /** Milliseconds into the round at which its operation is asked for. */
  readonly afterMs: number;
  /** Whether it is stopped before. */
  readonly stopped: boolean;
  /** Whether the operation brings what does not come up. */
  readonly broken: boolean;
}

/** One round: what is asked for, what is killed, and when. */
export interface RoundPlan {
  readonly seed: number;
  readonly kill: Kill;
  /** Milliseconds into the round. */
  readonly killAfterMs: number;
  readonly operation: OperationName;
  readonly agents: readonly AgentPlan[];
}

export const isPart = (kill: Kill): kill is Part => PARTS.some((part) => part === kill);

/** All of it depends on the seed alone. Consecutive seeds go through all kinds of kill. */
export function planRound(seed: number): RoundPlan {
  const random = new Random(seed);
  const kill = KILLS[seed % KILLS.length] ?? 'worker';
  const operation = random.pick(Object.keys(OPERATIONS) as OperationName[]); // its very keys
  const lastsMs = OPERATIONS[operation];
  const ofPart = isPart(kill);
  const agents = Array.from({ length: ofPart ? AGENTS : 1 }, () => ({
    afterMs: ofPart ? random.below(Math.min(lastsMs, 3_000) / 2) : 0,
    // What does not run has nothing to be killed.
    stopped: operation === 'start' || (ofPart && random.isOneIn(4) && isAmong(WHILE_STOPPED)),
    broken: random.isOneIn(4) && isAmong(REVERSIBLE),
  }));
  return { seed, kill, killAfterMs: random.below(lastsMs), operation, agents };

  function isAmong(names: readonly OperationName[]): boolean {
    return names.includes(operation);
  }
}
