import { Random } from '../support/random.js';

/** Work of agents for their owner that a kill interrupts, with approximate milliseconds from its request to its end. */
export const WORK = {
  task: 8_000,
  swarm: 5_000,
  skill: 4_000,
  verification: 1_500,
} as const;

/** Parts that carry out the work. */
const WORKING_PARTS = ['worker', 'api', 'temporal'] as const;

export type WorkKind = keyof typeof WORK;
export type WorkingPart = (typeof WORKING_PARTS)[number];

const KINDS = Object.keys(WORK) as WorkKind[]; // exactly its keys

/** One round: the work, the part that is killed, and the time of the kill. */
export interface WorkPlan {
  readonly seed: number;
  readonly kind: WorkKind;
  readonly part: WorkingPart;
  /** Milliseconds after the request. */
  readonly killAfterMs: number;
}

/** Plans a round from the seed alone; consecutive seeds cover all kinds of work with each part. */
export function planWork(seed: number): WorkPlan {
  const random = new Random(seed);
  const kind = KINDS[seed % KINDS.length] ?? 'task';
  const part = WORKING_PARTS[Math.floor(seed / KINDS.length) % WORKING_PARTS.length] ?? 'worker';
  return { seed, kind, part, killAfterMs: random.below(WORK[kind]) };
}
