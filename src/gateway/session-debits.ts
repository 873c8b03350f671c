import { DatabaseError } from 'sequelize';
import { Batcher } from '../lib/batcher.js';
import type { Database, FunctionCall } from '../platform/database/database.js';
import type { PaymentSessionSettings } from '../money/sessions/settings.js';
import { HOLD_MS, type Debit } from './debits.js';

/** Debits of one statement: each waits for all of it. */
const MAX_TOGETHER = 50;

/** A debit that was done. */
export interface DoneDebit {
  readonly outcome: 'open' | 'posted';
  readonly sequence: string;
  readonly amount: string;
  readonly cumulative: string;
  readonly created_at: Date;
  readonly remaining: string;
}

interface Step {
  readonly kind: 'hold' | 'post';
  /** Of its row. */
  readonly sessionId: string;
  readonly debit: Debit;
}

const RUN: FunctionCall = {
  name: 'run_debits',
  text: `SELECT * FROM run_debits(
           $1, $2, $3, $4,
           array_fill(now() + make_interval(secs => $5), ARRAY[cardinality($1::text[])]),
           $6, $7, $8, make_interval(secs => $9))`,
};

/**
 * Steps of debits of all sessions, many at a time: what is asked for while a statement is under way is
 * the next one. Each step holds or fails for itself.
 */
export class SessionDebits {
  readonly #batcher: Batcher<Step, DoneDebit | undefined>;

  constructor(
    database: Pick<Database, 'call'>,
    { settleIntervalMs, settleThreshold }: PaymentSessionSettings,
  ) {
    const settlement = [String(settleThreshold), settleIntervalMs / 1_000];
    this.#batcher = new Batcher(async (steps) => {
      const of = (value: (step: Step) => unknown) => steps.map(value);
      try {
        const done = await database.call<DoneDebit | { readonly outcome: 'alone' }>(RUN, [
          of(({ kind }) => kind),
          of(({ sessionId }) => sessionId),
          of(({ debit }) => debit.id),
          of(({ debit }) => String(debit.amount)),
          HOLD_MS / 1_000,
          of(({ debit }) => debit.plugin),
          of(({ debit }) => debit.action),
          ...settlement,
        ]);
        return done.map((each) => (each.outcome === 'alone' ? undefined : each));
      } catch (error) {
        // What the server has refused is not done at all: whose fault it was shows when each is done alone.
        if (error instanceof DatabaseError) return of(() => undefined) as undefined[];
        throw error;
      }
    }, MAX_TOGETHER);
  }

  /**
   * Holds the amount of a debit, or pays what is held of it.
   *
   * @returns undefined where that was not to be done among others, and was not: it is to be asked for alone.
   * @throws UnavailableError when too many wait. By what the database throws it is not known whether it was done.
   */
  run(step: Step): Promise<DoneDebit | undefined> {
    return this.#batcher.add(step);
  }
}
