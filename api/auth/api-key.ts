import type { ApiKeyHolder } from '../../src/accounts/api-key-lookup.js';
import { groundedAuthentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';

/** A user's program, by one of the user's API keys. What its headers say of a user never counts. */
export interface ApiKeyCaller extends Omit<ApiKeyHolder, 'lastUsed'> {
  readonly kind: 'api-key';
}

/** Finds the owner of a user's API key, with the plan that counts now. */
export type ApiKeyFinder = (key: string) => Promise<Omit<ApiKeyCaller, 'kind'> | undefined>;

/** An API key of a user, whose rows alone it shows. */
export const apiKey = groundedAuthentication<ApiKeyFinder, ApiKeyCaller>({
  name: 'api-key',
  schemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key of a user' } },
  errors: [401],
  prepare:
    (find) =>
    async ({ request }) => {
      const key = bearerOf(request);
      const holder = key === undefined ? undefined : await find(key);
      if (holder === undefined) return undefined;
      const { keyId, userId, email, isAdmin, plan, subscription } = holder;
      return {
        caller: { kind: 'api-key', keyId, userId, email, isAdmin, plan, subscription },
        sees: { userId },
        scope: `api-key:${keyId}`,
      };
    },
});
