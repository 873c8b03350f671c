import { DatabaseError } from 'sequelize';
import { Batcher } from '../lib/batcher.js';
import type { Database, FunctionCall } from '../platform/database/database.js';
import type { PaymentSessionSettings } from '../money/sessions/settings.js';
import { HOLD_MS, type Debit } from './debits.js';

/** Maximum number of debits in one statement; each debit waits for the whole statement. */
const MAX_TOGETHER = 50;

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
 * Debit steps across all sessions: those that arrive while a statement is in flight form the next one. Each
 * succeeds or fails independently.
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
        // A rejected batch changes nothing; retry its debits one by one.
        if (error instanceof DatabaseError) return of(() => undefined) as undefined[];
        throw error;
      }
    }, MAX_TOGETHER);
  }

  /**
   * Holds or posts a debit; undefined if it has to be retried outside a batch.
   * @throws UnavailableError if the queue is full. After a database error the step may have been done.
   */
  run(step: Step): Promise<DoneDebit | undefined> {
    return this.#batcher.add(step);
  }
}
