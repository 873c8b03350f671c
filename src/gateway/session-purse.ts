import type { Database, FunctionCall, Values } from '../platform/database/database.js';
import {
  balanceOf,
  CauseConflictError,
  HoldNotOpenError,
  release,
  type HoldState,
} from '../money/ledger/ledger.js';
import { sessionAccount, voucherCause } from '../money/sessions/causes.js';
import type { PaymentSessionSettings } from '../money/sessions/settings.js';
import type { DoneDebit, SessionDebits } from './session-debits.js';
import { HOLD_MS, type Debit, type DebitRefusal, type Paid, type PaymentSource } from './debits.js';

interface Held {
  readonly outcome: HoldState | 'insufficient' | 'other' | 'closed' | 'unknown';
  /** Null if nothing was ever deposited. */
  readonly remaining: string | null;
}

interface Posted extends Omit<DoneDebit, 'outcome'> {
  readonly outcome: 'posted' | 'released' | 'unknown' | 'other';
}

const HOLD: FunctionCall = {
  name: 'hold_debit',
  text: `SELECT outcome, remaining
           FROM hold_debit($1, $2, $3, now() + make_interval(secs => $4))`,
};

const POST: FunctionCall = {
  name: 'post_debit',
  text: `SELECT * FROM post_debit($1, $2, $3, $4, $5, make_interval(secs => $6))`,
};

const POST_WITHIN = `SELECT * FROM post_debit($session, $id, $plugin, $action,
  $threshold::numeric, make_interval(secs => $interval::double precision))`;

/** Makes a purse of a session's deposit. Each step of a debit is one statement, batched if possible. */
export function sessionPaymentSource(
  database: Database,
  sessionId: string,
  settings: PaymentSessionSettings,
  debits: Pick<SessionDebits, 'run'>,
): PaymentSource {
  const { settleIntervalMs, settleThreshold } = settings;
  const paying = ({ action, id, plugin }: Debit) =>
    ({
      session: sessionId,
      id,
      plugin,
      action,
      threshold: String(settleThreshold),
      interval: settleIntervalMs / 1_000,
    }) satisfies Values;
  return {
    method: 'session',
    buyer: `session:${sessionId}`,

    async remaining() {
      const { balance, held } = await balanceOf(
        database.asPlatform(),
        sessionAccount(sessionId),
        'pathusd',
      );
      return balance - held;
    },

    async hold(debit) {
      if (await debits.run({ kind: 'hold', sessionId, debit })) return undefined;
      const values = [sessionId, debit.id, String(debit.amount), HOLD_MS / 1_000];
      const [held] = await database.call<Held>(HOLD, values);
      if (!held) throw oneRow();
      return refusalOf(debit, held);
    },

    async post(debit, also) {
      const values = paying(debit);
      if (!also) {
        const done = await debits.run({ kind: 'post', sessionId, debit });
        if (done) return paidOf(debit, { ...done, outcome: 'posted' });
        const [posted] = await database.call<Posted>(POST, Object.values(values));
        return paidOf(debit, posted);
      }
      return database.asPlatform().transaction(async (db) => {
        const [posted] = await db.query<Posted>(POST_WITHIN, values);
        const paid = paidOf(debit, posted);
        await also(db, paid);
        return paid;
      });
    },

    release: (debit) => release(database.asPlatform(), voucherCause(debit.id)),
  };
}

function refusalOf(debit: Debit, { outcome, remaining }: Held): DebitRefusal | undefined {
  const left = remaining === null ? undefined : BigInt(remaining);
  switch (outcome) {
    case 'open':
      return undefined;
    case 'insufficient':
      return { code: 'SESSION_EXHAUSTED', remaining: left };
    case 'closed':
      return { code: 'SESSION_CLOSED', remaining: left };
    case 'unknown':
      return { code: 'SESSION_INVALID', remaining: undefined };
    case 'posted':
    case 'released':
    case 'other':
      throw new CauseConflictError(voucherCause(debit.id));
  }
}

function paidOf(debit: Debit, posted: Posted | undefined): Paid {
  if (!posted) throw oneRow();
  const { amount, created_at: createdAt, cumulative, outcome, remaining, sequence } = posted;
  if (outcome === 'other') throw new CauseConflictError(voucherCause(debit.id));
  if (outcome !== 'posted') throw new HoldNotOpenError(voucherCause(debit.id), outcome);
  return {
    voucher: {
      id: debit.id,
      sequence: Number(sequence),
      amount: BigInt(amount),
      cumulative: BigInt(cumulative),
      createdAt,
    },
    remaining: BigInt(remaining),
  };
}

const oneRow = () => new RangeError('A gateway function did not return exactly one row');
