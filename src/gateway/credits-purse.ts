import type { BillingSettings } from '../billing/settings.js';
import type { Database, Statements } from '../platform/database/database.js';
import {
  creditsOf,
  freeOf,
  grantedCause,
  grantedOf,
  holdCredits,
  InsufficientFundsError,
  postAll,
  releaseAll,
  resaleCreditsOf,
} from '../money/ledger/ledger.js';
import { HOLD_MS, type Debit, type PaymentSource } from './debits.js';
import type { GatewayAction } from './gateway-action.js';

const causeOf = ({ id }: Pick<Debit, 'id'>) => `gateway:${id}`;

/** The causes of a debit's holds, of which at least one exists. */
const causesOf = (debit: Debit) => [causeOf(debit), grantedCause(causeOf(debit))];

/**
 * Makes a purse of the user's credits, with accounts per user so that no users share a row lock. Granted
 * credits pay first, except for actions that pay a third party: those require bought credits of the age
 * `resaleDelayMs`.
 */
export function creditsPaymentSource(
  database: Database,
  userId: string,
  { isPricedByOthers = false }: Pick<GatewayAction, 'isPricedByOthers'>,
  { resaleDelayMs }: Pick<BillingSettings, 'resaleDelayMs'>,
): PaymentSource {
  const tenant = database.asUser(userId);
  const withGranted = !isPricedByOthers;
  const accounts = [creditsOf(userId), grantedOf(userId)];
  const remaining = (db: Statements) =>
    isPricedByOthers ? resaleCreditsOf(db, userId, resaleDelayMs) : freeOf(db, accounts, 'usd');
  return {
    method: 'credits',
    buyer: userId,

    remaining: () => remaining(tenant),

    async hold(debit) {
      const { amount } = debit;
      const cause = causeOf(debit);
      try {
        await holdCredits(tenant, {
          userId,
          amount,
          cause,
          withGranted,
          resaleDelayMs: isPricedByOthers ? resaleDelayMs : undefined,
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
        await postAll(db, causesOf(debit));
        return { remaining: await remaining(db) };
      };
      if (!also) return paying(tenant);
      return database.asPlatform().transaction(async (db) => {
        const paid = await paying(db);
        await also(db, paid);
        return paid;
      });
    },

    release: (debit) => releaseAll(tenant, causesOf(debit)),
  };
}
