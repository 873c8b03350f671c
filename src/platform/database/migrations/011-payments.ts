import { PLATFORM } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

/** Payments on chains, and the transactions that were signed for them. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE payments (
       id text PRIMARY KEY,
       cause text NOT NULL,
       chain_id bigint NOT NULL,
       signer text NOT NULL CHECK (signer ~ '^0x[0-9a-f]{40}$'),
       calls jsonb NOT NULL,
       gas bigint CHECK (gas > 0),
       state text NOT NULL DEFAULT 'queued'
         CHECK (state IN ('queued', 'broadcast', 'confirmed', 'failed')),
       failure text,
       nonce bigint,
       hash text,
       block_number bigint,
       attempts integer NOT NULL DEFAULT 0,
       requested_at timestamptz NOT NULL DEFAULT now(),
       due_at timestamptz NOT NULL DEFAULT now(),
       settled_at timestamptz,
       CONSTRAINT payments_settled CHECK ((settled_at IS NOT NULL) = (state IN ('confirmed', 'failed'))),
       CONSTRAINT payments_failure CHECK ((failure IS NOT NULL) = (state = 'failed')),
       CONSTRAINT payments_nonce CHECK (state <> 'broadcast' OR nonce IS NOT NULL),
       CONSTRAINT payments_confirmed
         CHECK (state <> 'confirmed' OR (hash IS NOT NULL AND block_number IS NOT NULL))
     );
     CREATE UNIQUE INDEX payments_cause ON payments (cause);
     CREATE INDEX payments_due ON payments (due_at) WHERE settled_at IS NULL;
     CREATE INDEX payments_of_signer ON payments (chain_id, signer, requested_at)
       WHERE settled_at IS NULL;
     CREATE INDEX payments_requested ON payments (requested_at, id);

     -- The fee is that of the receipt with which the transaction became final.
     CREATE TABLE transactions (
       hash text PRIMARY KEY,
       payment_id text REFERENCES payments,
       chain_id bigint NOT NULL,
       signer text NOT NULL,
       nonce bigint NOT NULL CHECK (nonce >= 0),
       purpose text NOT NULL CHECK (purpose IN ('pay', 'cancel', 'fill')),
       raw text NOT NULL,
       max_fee bigint NOT NULL CHECK (max_fee > 0),
       priority_fee bigint NOT NULL CHECK (priority_fee >= 0),
       gas bigint NOT NULL CHECK (gas > 0),
       fee bigint CHECK (fee > 0),
       fee_payer text,
       fee_block text,
       active boolean NOT NULL DEFAULT true,
       refused boolean NOT NULL DEFAULT false,
       signed_at timestamptz NOT NULL DEFAULT now(),
       broadcast_at timestamptz,
       block_number bigint,
       final_at timestamptz,
       CONSTRAINT transactions_payment CHECK ((payment_id IS NULL) = (purpose = 'fill')),
       CONSTRAINT transactions_fee
         CHECK (num_nonnulls(fee, fee_payer, fee_block) = 0
                OR num_nonnulls(fee, fee_payer, fee_block, final_at) = 4)
     );
     -- Two active transactions with one nonce would be two payments for one.
     CREATE UNIQUE INDEX transactions_active ON transactions (chain_id, signer, nonce)
       WHERE (active = true);
     CREATE INDEX transactions_nonce ON transactions (chain_id, signer, nonce);
     CREATE INDEX transactions_payment ON transactions (payment_id)
       WHERE payment_id IS NOT NULL;
     CREATE INDEX transactions_final ON transactions (final_at) WHERE final_at IS NOT NULL;`,
  );
  await protectTable(
    context,
    'payments',
    `SELECT, INSERT,
     UPDATE (state, failure, nonce, hash, block_number, attempts, due_at, settled_at)`,
    PLATFORM,
  );
  await protectTable(
    context,
    'transactions',
    `SELECT, INSERT,
     UPDATE (fee, fee_payer, fee_block, active, refused, broadcast_at, block_number, final_at)`,
    PLATFORM,
  );
};
