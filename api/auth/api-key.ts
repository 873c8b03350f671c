import type { ApiKeyHolder } from '../../src/accounts/accounts/api-key-lookup.js';
import type { CallerOf } from './authentication.js';
import { bearerToken, credential } from './credential.js';

/** An API key of a user, with the plan that counts now. What headers say of a user never counts. */
export const apiKey = credential({
  name: 'api-key',
  shows: { apiKey: bearerToken('An API key of a user') },
  idOf: ({ keyId }: Omit<ApiKeyHolder, 'lastUsed'>) => keyId,
});

export type ApiKeyCaller = CallerOf<typeof apiKey>;
