import { run, type Migration } from './migration.js';

/** A payment session may be due for its closing before its hold is on chain: it never becomes active. */
export const migration: Migration = (context) =>
  run(
    context,
    `ALTER TABLE payment_sessions
       DROP CONSTRAINT payment_sessions_closing,
       ADD CONSTRAINT payment_sessions_closing CHECK (
         state = 'opening' OR (closing_at IS NOT NULL) = (state IN ('settling', 'closed')));`,
  );
