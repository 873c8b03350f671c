import type { AccountDeletions } from '../src/accounts/accounts/account-deletions.js';
import { heartbeating } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';

/** Creates the steps that delete an account. Each is idempotent. */
export function createAccountDeletionActivities(deletions: AccountDeletions) {
  return {
    /** In the order in which the areas must be cleared. */
    accountAreas: () => Promise.resolve(deletions.areas),
    /** Fails as long as the area still holds data of the account. */
    leaveArea: (area: string, userId: string) =>
      asApplicationFailure(() => heartbeating(() => deletions.leave(area, userId))),
    eraseAccount: (userId: string) =>
      asApplicationFailure(() => heartbeating(() => deletions.erase(userId))),
  };
}

export type AccountDeletionActivities = ReturnType<typeof createAccountDeletionActivities>;
