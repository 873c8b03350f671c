import { randomBytes, randomUUID } from 'node:crypto';
import * as z from 'zod';
import type { Database } from '../../src/platform/database/database.js';
import { selectFrom, type RowOf } from '../../src/platform/database/schema/table.js';
import { paymentSessions } from '../../src/platform/database/tables/payment-sessions.js';
import { paymentVouchers } from '../../src/platform/database/tables/payment-vouchers.js';
import { BadRequestError } from '../../src/lib/errors.js';
import { gatewayAction } from '../../src/gateway/gateway-action.js';
import {
  balanceOf,
  creditsOf,
  freeOf,
  grantedOf,
  spentOf,
  transfer,
} from '../../src/money/ledger/ledger.js';
import { findById } from '../../src/money/sessions/session-openings.js';
import { newSessionToken, storedOf } from '../../src/money/sessions/session-token.js';
import type { PaymentSessionState } from '../../src/types/payment-session-states.js';
import { queryRows } from '../platform/database/catalog.js';
import { insertRow } from '../support/insert-row.js';
import type { TestDatabase } from '../support/postgres.js';

/** Price of the test actions, in base units. */
export const PRICE = 1_000n;

/** A payment session from its wallet's view. */
export interface TestSession {
  /** Primary key of the session's row. */
  readonly id: string;
  readonly token: string;
  readonly address: string;
  /** Headers of the session's requests. */
  readonly headers: Readonly<Record<string, string>>;
}

const hex = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`;

/** Opens a session with a confirmed hold, without any transaction on the chain. */
export async function openSession(database: Database, deposit: bigint): Promise<TestSession> {
  const token = newSessionToken();
  const address = hex(20);
  const id = randomUUID();
  await database.asPlatform().transaction(async (db) => {
    await insertRow(db, paymentSessions, {
      id,
      ...storedOf(token),
      sealedToken: 'sealed',
      address,
      chainId: '4217',
      escrow: hex(20),
      holdId: hex(32),
      nonce: hex(32),
      authorizationDeadline: new Date(),
      deposit: String(deposit),
      state: 'active',
      openedAt: new Date(),
      holdExpiresAt: new Date(Date.now() + 3_600_000),
    });
    await transfer(db, {
      debit: 'external',
      credit: `session:${id}`,
      amount: deposit,
      currency: 'pathusd',
      cause: `session-open:${id}`,
    });
  });
  return { id, token, address, headers: { 'x-session-id': token, 'x-wallet-address': address } };
}

/** Books bought credits for a user, in base units. */
export const giveCredits = (database: Database, userId: string, amount: bigint) =>
  transfer(database.asPlatform(), {
    debit: 'external',
    credit: creditsOf(userId),
    amount,
    currency: 'usd',
    cause: `purchase:${randomUUID()}`,
  });

/** Books granted credits for a user, in base units, which can be spent at once. */
export const grantCredits = (database: Database, userId: string, amount: bigint) =>
  transfer(database.asPlatform(), {
    debit: 'referrals',
    credit: grantedOf(userId),
    amount,
    currency: 'usd',
    cause: `referral:${randomUUID()}`,
  });

/** Returns what is free of a user's bought and granted credits, and what was spent. */
export async function creditsByKind({ db }: Pick<TestDatabase, 'db'>, userId: string) {
  const platform = db.asPlatform();
  const [bought, granted, spent] = await Promise.all(
    [creditsOf, grantedOf, spentOf].map((account) => freeOf(platform, [account(userId)], 'usd')),
  );
  return { bought, granted, spent };
}

/** Sets the state of a session. */
export const setState = (ownerUrl: string, { id }: TestSession, state: PaymentSessionState) =>
  queryRows(
    ownerUrl,
    `UPDATE payment_sessions SET state = '${state}', closing_at = now(),
            closed_at = ${state === 'closed' ? 'now()' : 'NULL'} WHERE id = '${id}'`,
  );

/** Returns the stored payments and balances of a session. */
export async function booksOf(database: Database, { id }: TestSession) {
  const platform = database.asPlatform();
  const vouchers = await platform.query<RowOf<typeof paymentVouchers>>(
    `${selectFrom(paymentVouchers)} WHERE session_id = $id ORDER BY sequence`,
    { id },
  );
  const row = await findById(database, id);
  if (!row) throw new Error('there is no such session');
  const own = await balanceOf(platform, `session:${id}`, 'pathusd');
  const spent = await balanceOf(platform, `session:${id}:spent`, 'pathusd');
  return {
    vouchers: vouchers.map(({ amount, cumulative, id: voucher, sequence }) => ({
      id: voucher,
      sequence: Number(sequence),
      amount: BigInt(amount),
      cumulative: BigInt(cumulative),
    })),
    delivered: BigInt(row.delivered),
    nextSequence: Number(row.nextSequence),
    settlementDueAt: row.settlementDueAt,
    left: own.balance,
    held: own.held,
    spent: spent.balance,
  };
}

export async function creditsLeft(database: Database, userId: string) {
  const { balance, held } = await balanceOf(database.asPlatform(), creditsOf(userId), 'usd');
  const spent = await balanceOf(database.asPlatform(), spentOf(userId), 'usd');
  return { balance, held, spent: spent.balance };
}

/** The behaviour of the test actions, set by each test. */
export interface Behaviour {
  run: (text: string, signal: AbortSignal) => Promise<string>;
}

/** Returns an action that echoes its input unless a behaviour is set. */
export const testActions = (behaviour: Behaviour) => [
  gatewayAction({
    plugin: 'echo',
    action: 'say',
    description: 'Echoes the text',
    price: PRICE,
    input: z.strictObject({ text: z.string().min(1) }),
    async run({ text }, { signal }) {
      if (text === 'refused') throw new BadRequestError('Cannot echo this text');
      return { text: await behaviour.run(text, signal) };
    },
  }),
];
