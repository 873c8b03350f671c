import { literal, Op } from 'sequelize';
import { ownedThrough } from '../schema/policies.js';
import {
  decimal,
  index,
  key,
  nullable,
  serial,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/** An amount in base units. */
const units = () => decimal(38, 0);

/** Balances by account and currency. Only database functions change them. */
export const ledgerAccounts = table(
  'ledger_accounts',
  {
    name: key(text()),
    currency: key(text()),
    /** Owner, if the account is a user's. */
    userId: nullable(text()),
    /** Sum of the account's transfers. */
    balance: withDefault(units(), literal('0')),
    /** Sum of the account's open holds, which is part of the balance. */
    held: withDefault(units(), literal('0')),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [index('ledger_accounts_user', ['user_id'], { user_id: { [Op.ne]: null } })],
  ownedThrough('user_id'),
);

/** Transfers between accounts; never changed or removed. */
export const ledgerTransfers = table(
  'ledger_transfers',
  {
    id: key(serial()),
    /** Purpose of the transfer; unique, so that none is made twice. */
    cause: text(),
    debit: text(),
    credit: text(),
    currency: text(),
    amount: units(),
    /** Owner of the debited account, or else of the credited one. */
    userId: nullable(text()),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [
    unique('ledger_transfers_cause_key', ['cause']),
    index('ledger_transfers_debit', ['debit', 'currency', 'id']),
    index('ledger_transfers_credit', ['credit', 'currency', 'id']),
    index('ledger_transfers_granted', ['created_at'], { debit: 'referrals' }),
  ],
  ownedThrough('user_id'),
);

/** Amounts held on an account until they are transferred or released. */
export const ledgerHolds = table(
  'ledger_holds',
  {
    /** Cause of the transfer that the hold becomes. */
    cause: key(text()),
    debit: text(),
    credit: text(),
    currency: text(),
    amount: units(),
    /** Owner of the debited account. */
    userId: nullable(text()),
    state: withDefault(text<'open' | 'posted' | 'released'>(), 'open'),
    /** Amount that was transferred; null if none was. */
    posted: nullable(units()),
    /** Time when the hold is released automatically. */
    expiresAt: timestamp(),
    createdAt: withDefault(timestamp(), literal('now()')),
    settledAt: nullable(timestamp()),
  },
  [
    index('ledger_holds_open', ['expires_at'], { state: 'open' }),
    index('ledger_holds_held', ['debit', 'currency'], { state: 'open' }),
    index('ledger_holds_settled', ['settled_at'], { state: { [Op.ne]: 'open' } }),
  ],
  ownedThrough('user_id'),
);
