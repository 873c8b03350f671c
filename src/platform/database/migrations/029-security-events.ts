import { PLATFORM } from '../schema/policies.js';
import { protectTable, run, servingRole, type Migration } from './migration.js';

/** What the identity provider tells of accounts, and mailboxes that reset mails do not go to. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE risc_events (
         id text PRIMARY KEY,
         issuer text NOT NULL,
         matching text NOT NULL CHECK (matching IN ('subject', 'email')),
         events jsonb NOT NULL,
         happened_at timestamptz NOT NULL,
         received_at timestamptz NOT NULL DEFAULT now(),
         due_at timestamptz NOT NULL DEFAULT now(),
         applied_at timestamptz,
         outcomes jsonb
       );
       CREATE INDEX risc_events_waiting ON risc_events (due_at) WHERE applied_at IS NULL;
       CREATE INDEX risc_events_applied ON risc_events (applied_at) WHERE applied_at IS NOT NULL;

       CREATE TABLE reset_mail_stops (
         id text PRIMARY KEY,
         stopped boolean NOT NULL,
         told_at timestamptz NOT NULL
       );

       ALTER TABLE identities ADD COLUMN told_at timestamptz;
       GRANT UPDATE (told_at) ON identities TO ${servingRole(context)};`,
    );
    const granted = 'SELECT, INSERT, UPDATE, DELETE';
    await protectTable(context, 'risc_events', granted, PLATFORM);
    await protectTable(context, 'reset_mail_stops', granted, PLATFORM);
  },

  async down(context) {
    await run(
      context,
      `ALTER TABLE identities DROP COLUMN told_at;
       DROP TABLE reset_mail_stops, risc_events;`,
    );
  },
};
