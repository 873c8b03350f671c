import { Random } from '../support/random.js';

/** Processes that are killed, or paused for a while. */
export const MONEY_PARTS = ['api', 'worker', 'payments', 'temporal', 'postgres', 'chain'] as const;

export type MoneyPart = (typeof MONEY_PARTS)[number];

/** Faults of the chain and of the connection to it. */
export const CHAIN_FAULTS = [
  /** Broadcasts arrive, but their answers are lost. */
  'deaf broadcasts',
  /** Broadcasts do not arrive. */
  'lost broadcasts',
  /** The node is unavailable. */
  'chain away',
  /** Broadcast transactions are not mined at first, and then the original ones are. */
  'low fees',
  /** The node ends and restarts from the state at the beginning of the round. */
  'older node',
  /** The last three blocks are replaced. */
  'reorganised',
] as const;

export type ChainFault = (typeof CHAIN_FAULTS)[number];

export const MONEY_FAULTS = [
  ...MONEY_PARTS.map((part) => `${part} killed` as const),
  ...MONEY_PARTS.map((part) => `${part} paused` as const),
  ...CHAIN_FAULTS,
] as const;

export type MoneyFault = (typeof MONEY_FAULTS)[number];

/** Approximate milliseconds from the request to the last step; the fault comes within them. */
const STEPS_MS = 4_000;

/** Purchases of a session: about two or three settlements before it is closed. */
const MOST_PURCHASES = 16;

/** Shortest and longest duration of a fault that has one. */
const SHORTEST_MS = 500;
const LONGEST_MS = 4_000;

/** One round: the payments, the fault and their times. */
export interface MoneyPlan {
  readonly seed: number;
  readonly fault: MoneyFault;
  /** Milliseconds into the round. */
  readonly faultAfterMs: number;
  readonly lastsMs: number;
  /** Recipients of each split and the time of its request; splits of one wallet wait for each other. */
  readonly splits: readonly {
    readonly afterMs: number;
    readonly recipients: number;
    readonly wallet: 0 | 1;
  }[];
  /** Time of a clone request, whose payment comes just before; undefined without a clone. */
  readonly cloneAfterMs: number | undefined;
  /** Times at which a payment session opens and closes, and its purchases, which may not all succeed. */
  readonly session: {
    readonly afterMs: number;
    readonly purchases: number;
    readonly closeAfterMs: number;
  };
}

/** Plans a round from the seed alone; consecutive seeds cover all faults. */
export function planMoneyRound(seed: number): MoneyPlan {
  const random = new Random(seed);
  const fault = MONEY_FAULTS[seed % MONEY_FAULTS.length] ?? 'payments killed';
  const splits = ([0, 0, 1] as const).map((wallet) => ({
    afterMs: random.below(STEPS_MS / 4),
    recipients: 1 + random.below(4),
    wallet,
  }));
  return {
    seed,
    fault,
    faultAfterMs: random.below(STEPS_MS),
    lastsMs: SHORTEST_MS + random.below(LONGEST_MS - SHORTEST_MS),
    splits,
    cloneAfterMs: random.isOneIn(3) ? random.below(STEPS_MS / 4) : undefined,
    session: {
      afterMs: random.below(STEPS_MS / 4),
      purchases: 1 + random.below(MOST_PURCHASES),
      closeAfterMs: random.below(STEPS_MS),
    },
  };
}
