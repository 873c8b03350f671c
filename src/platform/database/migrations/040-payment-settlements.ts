import { PLATFORM } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

/** What payment sessions have settled on chain, and those that are to be closed by their age. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE payment_settlements (
         session_id text NOT NULL REFERENCES payment_sessions,
         -- What the treasury is to have had of the hold, all in all.
         cumulative numeric(24,0) NOT NULL CHECK (cumulative >= 0),
         kind text NOT NULL CHECK (kind IN ('settle', 'close')),
         state text NOT NULL DEFAULT 'requested'
           CHECK (state IN ('requested', 'confirmed', 'failed')),
         attempts integer NOT NULL DEFAULT 1 CHECK (attempts > 0),
         -- The cause of its newest payment.
         payment text NOT NULL,
         transaction text,
         retry_at timestamptz,
         requested_at timestamptz NOT NULL DEFAULT now(),
         ended_at timestamptz,
         PRIMARY KEY (session_id, cumulative, kind),
         CHECK ((ended_at IS NULL) = (state = 'requested')),
         CHECK ((retry_at IS NOT NULL) = (state = 'failed'))
       );
       CREATE UNIQUE INDEX payment_settlements_payment ON payment_settlements (payment);
       -- One after the other: a sum is sent when what became of the one before is known.
       CREATE UNIQUE INDEX payment_settlements_under_way ON payment_settlements (session_id)
         WHERE state = 'requested';
       CREATE INDEX payment_sessions_aging ON payment_sessions (opened_at) WHERE state = 'active';
       CREATE INDEX payment_sessions_expiring ON payment_sessions (hold_expires_at)
         WHERE state = 'active';`,
    );
    await protectTable(
      context,
      'payment_settlements',
      'SELECT, INSERT, UPDATE (state, attempts, payment, transaction, retry_at, requested_at, ended_at)',
      PLATFORM,
    );
  },

  async down(context) {
    await run(
      context,
      `DROP INDEX payment_sessions_aging;
       DROP INDEX payment_sessions_expiring;
       DROP TABLE payment_settlements;`,
    );
  },
};
