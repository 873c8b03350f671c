import { ownedThrough } from '../schema/policies.js';
import { newTable } from './migration.js';

/** Wallets of users and of their agents. */
export const migration = newTable(
  'wallets',
  `-- The platform may have the only key of a wallet, and its funds would be lost with the key. So a row
   -- outlives its agent and its account, and user_id has no foreign key.
   CREATE TABLE wallets (
     id text PRIMARY KEY,
     user_id text NOT NULL,
     agent_id text,
     kind text NOT NULL CHECK (kind IN ('user', 'agent', 'imported', 'provider')),
     address text NOT NULL CHECK (address ~ '^0x[0-9a-f]{40}$'),
     sealed_key text,
     brought boolean NOT NULL DEFAULT false,
     created_at timestamptz NOT NULL,
     CHECK (agent_id IS NULL OR kind = 'agent'),
     CHECK (sealed_key IS NOT NULL OR kind IN ('agent', 'provider')),
     CHECK (NOT brought OR kind = 'imported'),
     FOREIGN KEY (agent_id, user_id) REFERENCES agents (id, user_id)
       ON DELETE SET NULL (agent_id)
   );
   CREATE UNIQUE INDEX wallets_user_key ON wallets (user_id) WHERE kind = 'user';
   CREATE UNIQUE INDEX wallets_provider_key ON wallets (user_id) WHERE kind = 'provider';
   CREATE UNIQUE INDEX wallets_imported_key ON wallets (user_id, address) WHERE kind = 'imported';
   CREATE UNIQUE INDEX wallets_agent_key ON wallets (agent_id) WHERE agent_id IS NOT NULL;
   CREATE INDEX wallets_user_created ON wallets (user_id, created_at, id);
   CREATE INDEX wallets_address ON wallets (address);

   CREATE TRIGGER wallets_need_account AFTER INSERT ON wallets
     FOR EACH ROW EXECUTE FUNCTION refuse_without_account();

   -- Deletes with an account the wallets whose keys others have: keys that the user brought, and
   -- addresses without a key here.
   CREATE FUNCTION forget_wallets() RETURNS trigger
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       DELETE FROM public.wallets WHERE user_id = OLD.id AND (sealed_key IS NULL OR brought);
       RETURN NULL;
     END$$;
   CREATE TRIGGER users_forget_wallets AFTER DELETE ON users
     FOR EACH ROW EXECUTE FUNCTION forget_wallets();`,
  'SELECT, INSERT, DELETE, UPDATE (sealed_key)',
  ownedThrough('user_id'),
);
