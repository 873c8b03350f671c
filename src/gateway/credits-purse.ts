import type { Database, Statements } from '../platform/database/database.js';
import {
  balanceOf,
  creditsOf,
  hold,
  InsufficientFundsError,
  post,
  release,
  spentOf,
} from '../money/ledger/ledger.js';
import { HOLD_MS, type PaymentSource } from './debits.js';

const CURRENCY = 'usd';

const causeOf = ({ id }: { readonly id: string }) => `gateway:${id}`;

/** Makes a purse of the user's credits, with an account per user so that no users share a row lock. */
export function creditsPaymentSource(database: Database, userId: string): PaymentSource {
  const tenant = database.asUser(userId);
  const remaining = async (db: Statements) => {
    const { balance, held } = await balanceOf(db, creditsOf(userId), CURRENCY);
    return balance - held;
  };
  return {
    method: 'credits',
    buyer: userId,

    remaining: () => remaining(tenant),

    async hold(debit) {
      try {
        await hold(tenant, {
          debit: creditsOf(userId),
          credit: spentOf(userId),
          amount: debit.amount,
          currency: CURRENCY,
          cause: causeOf(debit),
          forMs: HOLD_MS,
        });
        return undefined;
      } catch (error) {
        if (!(error instanceof InsufficientFundsError)) throw error;
        return { code: 'CREDITS_EXHAUSTED', remaining: await remaining(tenant) };
      }
    },

    async post(debit, also) {
      const paying = async (db: Statements) => {
        await post(db, causeOf(debit));
        return { remaining: await remaining(db) };
      };
      if (!also) return paying(tenant);
      return database.asPlatform().transaction(async (db) => {
        const paid = await paying(db);
        await also(db, paid);
        return paid;
      });
    },

    release: (debit) => release(tenant, causeOf(debit)),
  };
}
