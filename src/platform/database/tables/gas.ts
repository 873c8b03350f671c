import { literal, Op } from 'sequelize';
import { ownedThrough } from '../schema/policies.js';
import {
  bigint,
  boolean,
  index,
  key,
  nullable,
  table,
  text,
  timestamp,
  withDefault,
} from '../schema/table.js';

/** Gas of transactions whose fees the operator pays, until their day is over. */
export const gasReservations = table(
  'gas_reservations',
  {
    /** Cause of the payment that the gas is for. */
    id: key(text()),
    /** User who causes the payment; null without an account, or once the account is deleted. */
    userId: nullable(text()),
    /** Wallet of an opening of a payment session, in lower case. */
    wallet: nullable(text()),
    /** Network of the client that requested an opening. */
    client: nullable(text()),
    /** Gas limit of the payment; once settled, the gas that its transaction used. */
    gas: bigint(),
    /** True if an opening was refused or reverted: such openings are limited. */
    hasFailed: withDefault(boolean(), false),
    reservedAt: withDefault(timestamp(), literal('now()')),
    settledAt: nullable(timestamp()),
  },
  [
    index('gas_reservations_day', ['reserved_at', 'gas']),
    index('gas_reservations_user', ['user_id', 'reserved_at'], { user_id: { [Op.ne]: null } }),
    index('gas_reservations_wallet', ['wallet', 'reserved_at'], { wallet: { [Op.ne]: null } }),
    index('gas_reservations_client', ['client', 'reserved_at'], { client: { [Op.ne]: null } }),
  ],
  ownedThrough('user_id'),
);
