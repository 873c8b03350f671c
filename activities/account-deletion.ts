import type { AccountDeletions } from '../src/accounts/accounts/account-deletions.js';
import { heartbeating } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';

/** Creates the steps that delete an account. Each step is idempotent. */
export function createAccountDeletionActivities(deletions: AccountDeletions) {
  return {
    /** The areas that hold data of accounts, in the order in which they must be left. */
    accountAreas: () => Promise.resolve(deletions.areas),
    /** Removes the account from the area. Fails as long as the area still holds data of the account. */
    leaveArea: (area: string, userId: string) =>
      asApplicationFailure(() => heartbeating(() => deletions.leave(area, userId))),
    eraseAccount: (userId: string) =>
      asApplicationFailure(() => heartbeating(() => deletions.erase(userId))),
  };
}

export type AccountDeletionActivities = ReturnType<typeof createAccountDeletionActivities>;
