import { afterAll, beforeAll, expect, test } from 'vitest';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { queryRows } from './catalog.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database?.close());

// The code checks nearly all of these under a lock; the indexes hold even if a check is missing.
test.each([
  ['a payment for a cause', 'payments (cause)'],
  [
    'a transaction that counts for a nonce',
    'transactions (chain_id, signer, nonce) WHERE (active = true)',
  ],
  ['a clone for a payment', 'payment_claims (chain_id, hash)'],
  [
    'an open session of a wallet',
    "payment_sessions (chain_id, address) WHERE (state = ANY (ARRAY['opening'::text, 'active'::text, 'settling'::text]))",
  ],
  ['a session for an authorization', 'payment_sessions (escrow, address, nonce)'],
  ['a voucher in its place', 'payment_vouchers (session_id, sequence)'],
  ['a settlement under way', "payment_settlements (session_id) WHERE (state = 'requested'::text)"],
  ['a payout of a split in its place', 'royalty_payouts (split_id, "position")'],
  ['a settlement of a booking', 'royalty_splits (user_id, booking_id)'],
  [
    'a split that is paid out of a wallet',
    "royalty_splits (chain_id, from_address) WHERE (status = 'processing'::text)",
  ],
  ['a transfer for a cause', 'ledger_transfers (cause)'],
  ['a hold for a cause', 'ledger_holds (cause)'],
  ['a wallet that is made for a user', "wallets (user_id) WHERE (kind = 'user'::text)"],
  ['a wallet of an agent', 'wallets (agent_id) WHERE (agent_id IS NOT NULL)'],
])('%s is unique by an index of its table', async (_, what) => {
  const rows = await queryRows<{ definition: string }>(
    database.ownerUrl,
    `SELECT pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
      WHERE i.indisunique AND i.indisvalid AND i.indrelid IN (
        SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)`,
  );
  const unique = rows.map(({ definition }) =>
    definition.replace(/^.* ON public\.(\w+) USING btree /, '$1 '),
  );
  expect(unique).toContain(what);
});
