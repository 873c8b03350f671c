import { run, type Migration } from './migration.js';

/**
 * Deletions of accounts are handed over as mails and security events are: by when they are due. No link is
 * made any more for an account that is being deleted, and no CSRF token is stored.
 */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE account_deletions RENAME COLUMN looked_at TO due_at;
       UPDATE account_deletions SET due_at = now();
       ALTER TABLE account_deletions
         ALTER COLUMN due_at SET DEFAULT now(), ALTER COLUMN due_at SET NOT NULL;
       CREATE TRIGGER mail_tokens_need_account AFTER INSERT OR UPDATE ON mail_tokens
         FOR EACH ROW EXECUTE FUNCTION refuse_without_account();
       ALTER TABLE sessions ALTER COLUMN csrf_token DROP NOT NULL;
       UPDATE sessions SET csrf_token = NULL;`,
    );
  },

  async down(context) {
    await run(
      context,
      `UPDATE sessions SET csrf_token = gen_random_uuid()::text WHERE csrf_token IS NULL;
       ALTER TABLE sessions ALTER COLUMN csrf_token SET NOT NULL;
       DROP TRIGGER mail_tokens_need_account ON mail_tokens;
       ALTER TABLE account_deletions
         ALTER COLUMN due_at DROP DEFAULT, ALTER COLUMN due_at DROP NOT NULL;
       ALTER TABLE account_deletions RENAME COLUMN due_at TO looked_at;`,
    );
  },
};
