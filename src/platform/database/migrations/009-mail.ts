import { PLATFORM } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

/** An outbox of mails, and the tokens of the links in them. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE mails (
       id text PRIMARY KEY,
       kind text NOT NULL CHECK (kind IN ('verify-email', 'change-email', 'reset-password',
         'email-change-asked', 'email-changed', 'password-was-reset')),
       address text NOT NULL,
       user_id text REFERENCES users ON DELETE CASCADE,
       requested_at timestamptz NOT NULL DEFAULT now(),
       due_at timestamptz NOT NULL DEFAULT now(),
       settled_at timestamptz
     );
     CREATE INDEX mails_waiting ON mails (due_at) WHERE settled_at IS NULL;
     CREATE INDEX mails_address ON mails (address, kind, requested_at);
     CREATE INDEX mails_requested ON mails (requested_at);
     CREATE INDEX mails_user ON mails (user_id) WHERE user_id IS NOT NULL;

     CREATE TABLE mail_tokens (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users ON DELETE CASCADE,
       kind text NOT NULL CHECK (kind IN ('verify-email', 'reset-password')),
       email text NOT NULL,
       expires_at timestamptz NOT NULL
     );
     CREATE UNIQUE INDEX mail_tokens_of_user ON mail_tokens (user_id, kind);
     CREATE INDEX mail_tokens_expires_at ON mail_tokens (expires_at);
     CREATE TRIGGER mail_tokens_need_account AFTER INSERT OR UPDATE ON mail_tokens
       FOR EACH ROW EXECUTE FUNCTION refuse_without_account();`,
  );
  const queued = 'SELECT, INSERT, DELETE, UPDATE (due_at, settled_at)';
  await protectTable(context, 'mails', queued, PLATFORM);
  await protectTable(context, 'mail_tokens', 'SELECT, INSERT, UPDATE, DELETE', PLATFORM);
};
