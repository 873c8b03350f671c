import { apiKey, type ApiKeyCaller } from './api-key.js';
import { authentication } from './authentication.js';
import { bearerOf, keyMatcher } from './bearer-token.js';
import { internalIdentity, internalKey, type InternalCaller } from './internal-key.js';

export const bearer = authentication<InternalCaller | ApiKeyCaller>({
  name: 'bearer',
  schemes: [...internalKey.schemes, ...apiKey.schemes],
  errors: [400, 401, 503],
  prepare(configs) {
    const isInternal = keyMatcher(configs.of(internalKey));
    const byApiKey = apiKey.prepare(configs);
    return (presented) =>
      isInternal(bearerOf(presented.request) ?? '')
        ? internalIdentity(presented.request)
        : byApiKey(presented);
  },
});

/** Returns the user that a caller is or speaks for; undefined for the operator's own programs. */
export const userIdOf = (caller: InternalCaller | ApiKeyCaller): string | undefined =>
  caller.kind === 'api-key' ? caller.userId : caller.user?.id;
