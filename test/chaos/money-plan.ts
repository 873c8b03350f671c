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

/** Steps of a purchase of credits or a plan and of a message, during which a part is killed. */
export const MONEY_STEPS = [
  'webhook',
  'credit',
  'refund',
  'subscription',
  'message',
  'delivery',
] as const;

export type MoneyStep = (typeof MONEY_STEPS)[number];

export const MONEY_FAULTS = [
  ...MONEY_PARTS.map((part) => `${part} killed` as const),
  ...MONEY_PARTS.map((part) => `${part} paused` as const),
  ...CHAIN_FAULTS,
  ...MONEY_STEPS.map((step) => `a kill during ${step}` as const),
] as const;

export type MoneyFault = (typeof MONEY_FAULTS)[number];

/** Approximate milliseconds from the request to the last step; the fault occurs within this time. */
const STEPS_MS = 4_000;

/** Purchases of a session: about two or three settlements before it is closed. */
const MOST_PURCHASES = 16;

/** Processes involved in a step, and the maximum milliseconds until the kill. */
const STEP_KILLS = {
  webhook: { parts: ['api', 'postgres'], withinMs: 40 },
  credit: { parts: ['worker', 'postgres', 'temporal'], withinMs: 150 },
  refund: { parts: ['api', 'worker', 'postgres', 'temporal'], withinMs: 150 },
  subscription: { parts: ['worker', 'postgres', 'temporal'], withinMs: 150 },
  message: { parts: ['api', 'postgres', 'payments'], withinMs: 40 },
  delivery: { parts: ['worker', 'postgres', 'temporal'], withinMs: 10 },
} as const satisfies Record<MoneyStep, { parts: readonly MoneyPart[]; withinMs: number }>;

/** Amounts of credits on sale, in cents. */
const CREDITS = [500, 1_000, 2_500, 5_000] as const;

/** A change of a plan at the payment processor. */
export type PlanChange = 'renewed' | 'not paid' | 'paid' | 'raised' | 'given up' | 'cancelled';

/** Changes of a plan in a round, which the processor reports all at once. */
const PLAN_CHANGES: readonly (readonly PlanChange[])[] = [
  [],
  ['renewed', 'raised'],
  ['not paid'],
  ['not paid', 'paid', 'raised'],
  ['not paid', 'given up'],
  ['raised', 'renewed', 'cancelled'],
];

/** Outcome of a message at its receiver. */
export type MessageFate = 'taken' | 'missed once' | 'gone';

const MESSAGES = 6;

/** A purchase of credits, and the part of it that is reversed. */
export interface PlannedPurchase {
  readonly cents: number;
  /** Cents of each refund. */
  readonly refunds: readonly number[];
  /** The end of a dispute of the whole payment; undefined without a dispute. */
  readonly dispute: 'won' | 'lost' | undefined;
  /** True if refunds and disputes are reported before the payment. */
  readonly isRefundFirst: boolean;
}

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
  /** Time of a clone request, whose payment is made just before; undefined without a clone. */
  readonly cloneAfterMs: number | undefined;
  /** Times at which a payment session opens and closes, and its purchases, which may not all succeed. */
  readonly session: {
    readonly afterMs: number;
    readonly purchases: number;
    readonly closeAfterMs: number;
  };
  /** The kill during a step; undefined for another fault. */
  readonly kill:
    | { readonly step: MoneyStep; readonly part: MoneyPart; readonly afterMs: number }
    | undefined;
  readonly credits: { readonly afterMs: number; readonly purchases: readonly PlannedPurchase[] };
  /** The purchase of a plan, and its later changes. */
  readonly subscription: { readonly afterMs: number; readonly changes: readonly PlanChange[] };
  /** Messages with their times; `from` is the wallet that signs. */
  readonly messages: readonly {
    readonly afterMs: number;
    readonly from: 0 | 1;
    readonly fate: MessageFate;
  }[];
}

/** Plans a round only from the seed; consecutive seeds cover all faults. */
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
    kill: planKill(random, fault),
    credits: {
      afterMs: random.below(STEPS_MS / 4),
      // The first purchase always has a refund, so that each round has every step.
      purchases: Array.from({ length: 1 + random.below(3) }, (_, n) =>
        planPurchase(random, n === 0),
      ),
    },
    subscription: {
      afterMs: random.below(STEPS_MS / 4),
      changes: random.pick(PLAN_CHANGES),
    },
    messages: Array.from({ length: MESSAGES }, (_, n) => ({
      afterMs: random.below(STEPS_MS / 2),
      from: random.isOneIn(2) ? 0 : 1,
      fate: n === 0 ? 'taken' : random.pick(['taken', 'missed once', 'gone'] as const),
    })),
  };
}

function planKill(random: Random, fault: MoneyFault): MoneyPlan['kill'] {
  const step = MONEY_STEPS.find((each) => fault === `a kill during ${each}`);
  if (step === undefined) return undefined;
  const { parts, withinMs } = STEP_KILLS[step];
  return { step, part: random.pick<MoneyPart>(parts), afterMs: random.below(withinMs) };
}

function planPurchase(random: Random, isRefunded: boolean): PlannedPurchase {
  const cents = random.pick(CREDITS);
  const part = 1 + random.below(cents / 2 - 1);
  const refunds = isRefunded || random.isOneIn(2) ? [part, part] : [];
  const dispute = random.isOneIn(3) ? random.pick(['won', 'lost'] as const) : undefined;
  return { cents, refunds, dispute, isRefundFirst: random.isOneIn(3) };
}
