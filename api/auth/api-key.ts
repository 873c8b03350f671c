import type { CallingKeyHolder } from '../../src/accounts/accounts/api-key-lookup.js';
import type { CallerOf } from './authentication.js';
import { bearerToken, credential } from './credential.js';

/** A user's API key, with the user's current plan. Identity headers are ignored. */
export const apiKey = credential({
  name: 'api-key',
  shows: { apiKey: bearerToken('An API key of a user') },
  idOf: ({ keyId }: Omit<CallingKeyHolder, 'lastUsed'>) => keyId,
  // The user's id, as for a session: several keys share one limit, and none repeats another's payment.
  scopeOf: ({ userId }) => userId,
  keyScopesOf: ({ scopes }) => scopes,
});

export type ApiKeyCaller = CallerOf<typeof apiKey>;
