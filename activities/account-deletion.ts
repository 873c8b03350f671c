import type { AccountDeletions } from '../src/accounts/accounts/account-deletions.js';
import { heartbeating } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';

/** The steps of the deletion of an account. Each may be done again. */
export function createAccountDeletionActivities(deletions: AccountDeletions) {
  return {
    /** The areas that have something of accounts, in the order in which they are to be asked. */
    accountAreas: () => Promise.resolve(deletions.areas),
    /** Fails as long as the area has something of the account. */
    leaveArea: (area: string, userId: string) =>
      asApplicationFailure(() => heartbeating(() => deletions.leave(area, userId))),
    eraseAccount: (userId: string) =>
      asApplicationFailure(() => heartbeating(() => deletions.erase(userId))),
  };
}

export type AccountDeletionActivities = ReturnType<typeof createAccountDeletionActivities>;
