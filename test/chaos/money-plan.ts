import { Random } from '../support/random.js';

/** Processes that are killed, or stand still for a while. */
export const MONEY_PARTS = ['api', 'worker', 'payments', 'temporal', 'postgres', 'chain'] as const;

export type MoneyPart = (typeof MONEY_PARTS)[number];

/** What is done to the chain, and on the way to it. */
export const CHAIN_FAULTS = [
  /** Broadcasts arrive, and nobody hears of it. */
  'deaf broadcasts',
  /** Broadcasts do not arrive. */
  'lost broadcasts',
  /** The node is away. */
  'chain away',
  /** Nothing is mined for what is offered, and then what was offered first. */
  'low fees',
  /** The node ends, and comes back as it was when the round began. */
  'older node',
  /** The last three blocks are other ones now. */
  'reorganised',
] as const;

export type ChainFault = (typeof CHAIN_FAULTS)[number];

export const MONEY_FAULTS = [
  ...MONEY_PARTS.map((part) => `${part} killed` as const),
  ...MONEY_PARTS.map((part) => `${part} paused` as const),
  ...CHAIN_FAULTS,
] as const;

export type MoneyFault = (typeof MONEY_FAULTS)[number];

/** About how many milliseconds all steps take from the request on: the fault comes at any of them. */
const STEPS_MS = 4_000;

/** Of a session: about what is settled before it is closed, twice or three times. */
const MOST_PURCHASES = 16;

/** How long what lasts goes on. */
const SHORTEST_MS = 500;
const LONGEST_MS = 4_000;

/** One round: what is paid, what goes wrong meanwhile, and when. */
export interface MoneyPlan {
  readonly seed: number;
  readonly fault: MoneyFault;
  /** Milliseconds into the round. */
  readonly faultAfterMs: number;
  readonly lastsMs: number;
  /** How many each split pays, and when it is asked for; those of one wallet wait for each other. */
  readonly splits: readonly {
    readonly afterMs: number;
    readonly recipients: number;
    readonly wallet: 0 | 1;
  }[];
  /** When a clone is asked for that was paid for just before; undefined where none is. */
  readonly cloneAfterMs: number | undefined;
  /** When a payment session is opened, how much is bought by it, and when it is closed, bought or not. */
  readonly session: {
    readonly afterMs: number;
    readonly purchases: number;
    readonly closeAfterMs: number;
  };
}

/** All of it depends on the seed alone. Consecutive seeds go through all faults. */
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
