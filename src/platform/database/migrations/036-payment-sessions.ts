import { ownedThrough } from '../schema/policies.js';
import { newTable } from './migration.js';

/** What wallets have held for what they buy. */
export const migration = newTable(
  'payment_sessions',
  `CREATE TABLE payment_sessions (
     id text PRIMARY KEY,
     -- What it holds is settled also when the account is no more.
     user_id text REFERENCES users ON DELETE SET NULL,
     token_hash text NOT NULL,
     token_end text NOT NULL,
     sealed_token text NOT NULL,
     address text NOT NULL CHECK (address ~ '^0x[0-9a-f]{40}$'),
     chain_id bigint NOT NULL,
     escrow text NOT NULL CHECK (escrow ~ '^0x[0-9a-f]{40}$'),
     hold_id text NOT NULL CHECK (hold_id ~ '^0x[0-9a-f]{64}$'),
     nonce text NOT NULL CHECK (nonce ~ '^0x[0-9a-f]{64}$'),
     authorization_deadline timestamptz NOT NULL,
     deposit numeric(24,0) NOT NULL CHECK (deposit > 0),
     state text NOT NULL DEFAULT 'opening'
       CHECK (state IN ('opening', 'active', 'settling', 'closed', 'failed')),
     next_sequence bigint NOT NULL DEFAULT 1 CHECK (next_sequence > 0),
     delivered numeric(24,0) NOT NULL DEFAULT 0 CHECK (delivered BETWEEN 0 AND deposit),
     settled numeric(24,0) NOT NULL DEFAULT 0 CHECK (settled BETWEEN 0 AND delivered),
     settlement_due_at timestamptz,
     hold_expires_at timestamptz,
     due_at timestamptz NOT NULL DEFAULT now(),
     created_at timestamptz NOT NULL DEFAULT now(),
     opened_at timestamptz,
     closing_at timestamptz,
     closed_at timestamptz,
     failure text,
     CONSTRAINT payment_sessions_opened CHECK (
       (opened_at IS NULL) = (state IN ('opening', 'failed'))
       AND (hold_expires_at IS NULL) = (opened_at IS NULL)),
     CONSTRAINT payment_sessions_closing
       CHECK ((closing_at IS NOT NULL) = (state IN ('settling', 'closed'))),
     CONSTRAINT payment_sessions_closed CHECK ((closed_at IS NOT NULL) = (state = 'closed')),
     CONSTRAINT payment_sessions_failed CHECK ((failure IS NOT NULL) = (state = 'failed'))
   );
   CREATE UNIQUE INDEX payment_sessions_token ON payment_sessions (token_hash);
   CREATE UNIQUE INDEX payment_sessions_authorization ON payment_sessions (escrow, address, nonce);
   -- Its wallet's cover is one session's at a time.
   CREATE UNIQUE INDEX payment_sessions_open ON payment_sessions (chain_id, address)
     WHERE state IN ('opening', 'active', 'settling');
   CREATE INDEX payment_sessions_listed ON payment_sessions (address, created_at, id);
   CREATE INDEX payment_sessions_user ON payment_sessions (user_id);
   CREATE INDEX payment_sessions_due ON payment_sessions (due_at)
     WHERE state IN ('opening', 'settling');
   CREATE INDEX payment_sessions_settlement_due ON payment_sessions (settlement_due_at)
     WHERE settlement_due_at IS NOT NULL;
   CREATE TRIGGER payment_sessions_need_account AFTER INSERT ON payment_sessions
     FOR EACH ROW EXECUTE FUNCTION refuse_without_account();`,
  `SELECT, INSERT, UPDATE (sealed_token, state, next_sequence, delivered, settled,
     settlement_due_at, hold_expires_at, due_at, opened_at, closing_at, closed_at, failure)`,
  ownedThrough('user_id'),
);
