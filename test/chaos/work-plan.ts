import { Random } from '../support/random.js';

/** Work for an owner that a kill interrupts, with approximate milliseconds from its request to its end. */
export const WORK = {
  task: 8_000,
  swarm: 5_000,
  skill: 4_000,
  verification: 1_500,
  video: 6_000,
  email: 5_000,
  radio: 9_000,
} as const;

/** Parts that carry out the work. */
const WORKING_PARTS = ['worker', 'api', 'temporal'] as const;

/** Parts whose death or silence a source of the radio and its listeners may notice. */
const RADIO_PARTS = [...WORKING_PARTS, 'icecast', 'hung api'] as const;

export type WorkKind = keyof typeof WORK;
export type WorkPart = (typeof RADIO_PARTS)[number];

export const WORK_KINDS = Object.keys(WORK) as WorkKind[]; // exactly its keys

/** One round: the work, the part that is killed or hangs, and the time of the fault. */
export interface WorkPlan {
  readonly seed: number;
  readonly kind: WorkKind;
  readonly part: WorkPart;
  /** Milliseconds after the request. */
  readonly killAfterMs: number;
}

/** Plans a round only from the seed; consecutive seeds cover all of these kinds of work with each part. */
export function planWork(seed: number, kinds: readonly WorkKind[] = WORK_KINDS): WorkPlan {
  const random = new Random(seed);
  const kind = kinds[seed % kinds.length] ?? 'task';
  const parts = kind === 'radio' ? RADIO_PARTS : WORKING_PARTS;
  const part = parts[Math.floor(seed / kinds.length) % parts.length] ?? 'worker';
  return { seed, kind, part, killAfterMs: random.below(WORK[kind]) };
}
