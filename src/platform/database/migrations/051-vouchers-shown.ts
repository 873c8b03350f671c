import { PLATFORM, seenWith } from '../schema/policies.js';
import { replacePolicy, type Migration } from './migration.js';

/** Whoever has opened a payment session sees what was delivered for it. */
export const migration: Migration = {
  up: (context) =>
    replacePolicy(context, 'payment_vouchers', seenWith('session_id', 'payment_sessions')),

  down: (context) => replacePolicy(context, 'payment_vouchers', PLATFORM),
};
