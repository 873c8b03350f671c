import { ownedThrough } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

const TABLES = `
   -- No foreign key to users: events of a subscription may follow its account's end.
   CREATE TABLE subscription_checkouts (
     id text PRIMARY KEY,
     user_id text NOT NULL,
     kind text NOT NULL,
     plan text NOT NULL,
     session_id text,
     created_at timestamptz NOT NULL DEFAULT now(),
     -- Time from which the checkout cannot be paid: it is paid already, or expired.
     ended_at timestamptz,
     CONSTRAINT subscription_checkouts_plan_check CHECK (
       CASE kind WHEN 'plan' THEN plan IN ('label', 'solo', 'collective', 'network')
                 WHEN 'storage' THEN plan IN ('10gb', '50gb', '200gb') ELSE false END)
   );
   CREATE UNIQUE INDEX subscription_checkouts_session_key ON subscription_checkouts (session_id);
   CREATE INDEX subscription_checkouts_user ON subscription_checkouts (user_id, id);
   CREATE INDEX subscription_checkouts_open ON subscription_checkouts (created_at)
     WHERE ended_at IS NULL;
   CREATE INDEX subscription_checkouts_ended ON subscription_checkouts (created_at)
     WHERE ended_at IS NOT NULL;

   -- As in subscription_checkouts, of credits.
   ALTER TABLE checkouts ADD COLUMN ended_at timestamptz;
   CREATE INDEX checkouts_open ON checkouts (created_at) WHERE paid_at IS NULL AND ended_at IS NULL;

   -- A subscription may end within the second of its start.
   ALTER TABLE subscriptions
     DROP CONSTRAINT subscriptions_check,
     ADD CONSTRAINT subscriptions_check CHECK (period_end >= period_start),
     ADD COLUMN customer_id text,
     -- Time at which the processor was last asked for the state.
     ADD COLUMN read_at timestamptz,
     -- Time of the end for good; an unpaid subscription may be paid again.
     ADD COLUMN ended_at timestamptz,
     -- Set while the owner has been sent a mail about the end.
     ADD COLUMN end_mailed_at timestamptz;
   CREATE INDEX subscriptions_read ON subscriptions (read_at)
     WHERE source = 'processor' AND status <> 'cancelled';

   -- 'read': the subscription that the event names was read from the processor.
   ALTER TABLE processor_events DROP CONSTRAINT processor_events_outcome_check,
     ADD CONSTRAINT processor_events_outcome_check
       CHECK (outcome IN ('booked', 'unpaid', 'unmatched', 'read'));

   ALTER TABLE mails DROP CONSTRAINT mails_kind_check,
     ADD CONSTRAINT mails_kind_check CHECK (kind IN ('verify-email', 'change-email',
       'reset-password', 'email-change-asked', 'email-changed', 'password-was-reset',
       'keys-got-scopes', 'key-added', 'sign-in-added', 'sign-in-removed', 'bus-dead-letters',
       'plan-ended'));`;

/** Checkouts of plans, and states of the payment processor's subscriptions. */
export const migration: Migration = async (context) => {
  await run(context, TABLES);
  const grants = 'SELECT, INSERT, UPDATE, DELETE';
  await protectTable(context, 'subscription_checkouts', grants, ownedThrough('user_id'));
};
