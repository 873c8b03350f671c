import { literal, Op } from 'sequelize';
import { ownedThrough } from '../policies.js';
import { decimal, key, nullable, serial, table, text, timestamp, withDefault } from '../table.js';

/** Base units. */
const units = () => decimal(38, 0);

/** What is somebody's, in one currency. Only functions of the database change it. */
export const ledgerAccounts = table(
  'ledger_accounts',
  {
    name: key(text()),
    currency: key(text()),
    /** Whose it is, where it is a user's. */
    userId: nullable(text()),
    /** The sum of its transfers. */
    balance: withDefault(units(), literal('0')),
    /** The sum of its open holds, which is part of the balance. */
    held: withDefault(units(), literal('0')),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [{ name: 'ledger_accounts_user', fields: ['user_id'], where: { user_id: { [Op.ne]: null } } }],
  ownedThrough('user_id'),
);

/** What was moved from one account to another: nothing changes or removes it. */
export const ledgerTransfers = table(
  'ledger_transfers',
  {
    id: key(serial()),
    /** What it was for: nothing is moved for it a second time. */
    cause: text(),
    debit: text(),
    credit: text(),
    currency: text(),
    amount: units(),
    /** Whose the debited account is, else the credited one. */
    userId: nullable(text()),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [
    { name: 'ledger_transfers_cause_key', unique: true, fields: ['cause'] },
    { name: 'ledger_transfers_debit', fields: ['debit', 'currency', 'id'] },
    { name: 'ledger_transfers_credit', fields: ['credit', 'currency', 'id'] },
  ],
  ownedThrough('user_id'),
);

/** What is kept back of an account, until it is moved or free again. */
export const ledgerHolds = table(
  'ledger_holds',
  {
    /** That of the transfer which it becomes. */
    cause: key(text()),
    debit: text(),
    credit: text(),
    currency: text(),
    amount: units(),
    /** Whose the debited account is. */
    userId: nullable(text()),
    state: withDefault(text<'open' | 'posted' | 'released'>(), 'open'),
    /** What of it was moved; null when nothing was. */
    posted: nullable(units()),
    /** When it is released by itself. */
    expiresAt: timestamp(),
    createdAt: withDefault(timestamp(), literal('now()')),
    settledAt: nullable(timestamp()),
  },
  [
    { name: 'ledger_holds_open', fields: ['expires_at'], where: { state: 'open' } },
    { name: 'ledger_holds_held', fields: ['debit', 'currency'], where: { state: 'open' } },
    { name: 'ledger_holds_settled', fields: ['settled_at'], where: { state: { [Op.ne]: 'open' } } },
  ],
  ownedThrough('user_id'),
);
