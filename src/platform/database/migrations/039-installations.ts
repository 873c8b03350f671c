import { PLATFORM } from '../schema/policies.js';
import { protectTable, run, servingRole, type Migration } from './migration.js';

/** Installations of ids that are no account's, and invite codes. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `ALTER TABLE installations DROP CONSTRAINT installations_user_id_fkey;
     -- Sealed; null if the installation has none.
     ALTER TABLE installations ADD COLUMN sealed_gateway_token text;
     CREATE INDEX installations_seen ON installations (last_seen, user_id);
     GRANT INSERT, DELETE ON installations TO ${servingRole(context)};

     CREATE FUNCTION remove_installation() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         DELETE FROM public.installations WHERE user_id = OLD.id;
         RETURN NULL;
       END$$;
     CREATE TRIGGER users_without_installation AFTER DELETE ON users
       FOR EACH ROW EXECUTE FUNCTION remove_installation();

     CREATE TABLE invite_codes (
       -- Digest of the code, which is stored nowhere.
       id text PRIMARY KEY,
       remaining integer NOT NULL CHECK (remaining >= 0),
       expires_at timestamptz NOT NULL,
       created_at timestamptz NOT NULL DEFAULT now()
     );
     CREATE INDEX invite_codes_expires ON invite_codes (expires_at);`,
  );
  await protectTable(
    context,
    'invite_codes',
    'SELECT, INSERT, DELETE, UPDATE (remaining)',
    PLATFORM,
  );
};
