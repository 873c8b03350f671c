import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, servingRole, type Migration } from './migration.js';

/** Payments of a wallet to several recipients at once, and the share of each. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE royalty_splits (
       id bigserial PRIMARY KEY,
       user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
       agent_id text NOT NULL,
       -- Names the request that made the split.
       request_key text NOT NULL,
       booking_id text,
       from_address text NOT NULL,
       chain_id bigint NOT NULL,
       token_address text NOT NULL,
       name text NOT NULL,
       total_amount numeric(24,0) NOT NULL CHECK (total_amount > 0),
       status text NOT NULL DEFAULT 'queued'
         CHECK (status IN ('queued', 'processing', 'completed', 'partial', 'failed')),
       error text,
       -- Counts the attempts to pay what is unpaid.
       attempt integer NOT NULL DEFAULT 1,
       due_at timestamptz NOT NULL DEFAULT now(),
       created_at timestamptz NOT NULL DEFAULT now(),
       completed_at timestamptz
     );
     CREATE UNIQUE INDEX royalty_splits_id_user ON royalty_splits (id, user_id);
     CREATE UNIQUE INDEX royalty_splits_request ON royalty_splits (user_id, request_key);
     CREATE UNIQUE INDEX royalty_splits_booking ON royalty_splits (user_id, booking_id);
     -- One split of a wallet is processed at a time, because each spends the wallet's balance.
     CREATE UNIQUE INDEX royalty_splits_paying ON royalty_splits (chain_id, from_address)
       WHERE status = 'processing';
     CREATE INDEX royalty_splits_due ON royalty_splits (due_at)
       WHERE status IN ('queued', 'processing');
     CREATE INDEX royalty_splits_user ON royalty_splits (user_id, id);
     CREATE TRIGGER royalty_splits_need_account AFTER INSERT ON royalty_splits
       FOR EACH ROW EXECUTE FUNCTION refuse_without_account();

     CREATE TABLE royalty_payouts (
       split_id bigint NOT NULL,
       position integer NOT NULL,
       user_id text NOT NULL,
       address text NOT NULL,
       share integer NOT NULL CHECK (share BETWEEN 0 AND 1000000),
       amount numeric(24,0) NOT NULL CHECK (amount >= 0),
       status text NOT NULL CHECK (status IN ('pending', 'sent', 'confirmed', 'failed', 'skipped')),
       -- The cause of the payment that includes the payout. Once requested, the payment may be made.
       payment text,
       transaction text,
       PRIMARY KEY (split_id, position),
       CHECK (status = 'failed' OR (payment IS NULL) = (status IN ('pending', 'skipped'))),
       FOREIGN KEY (split_id, user_id) REFERENCES royalty_splits (id, user_id) ON DELETE CASCADE
     );
     CREATE INDEX royalty_payouts_user ON royalty_payouts (user_id);

     GRANT USAGE ON SEQUENCE royalty_splits_id_seq TO ${servingRole(context)};`,
  );
  const owned = ownedThrough('user_id');
  await protectTable(
    context,
    'royalty_splits',
    'SELECT, INSERT, DELETE, UPDATE (status, error, attempt, due_at, completed_at)',
    owned,
  );
  await protectTable(
    context,
    'royalty_payouts',
    'SELECT, INSERT, UPDATE (status, payment, transaction)',
    owned,
  );
};
