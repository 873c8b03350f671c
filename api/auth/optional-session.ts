import { anonymousIdentity, type AnonymousCaller } from './anonymous.js';
import { authentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';
import { session, type SessionCaller } from './session.js';

/** A session, or anonymous without a session or with a bearer token: no key is a session. */
export const optionalSession = authentication<SessionCaller | AnonymousCaller>({
  name: 'optional-session',
  schemes: session.schemes,
  optional: true,
  errors: [],
  errorsOfChanges: [403],
  prepare(configs) {
    const signedIn = session.prepare(configs);
    return async (presented) => {
      const isBearer = bearerOf(presented.request) !== undefined;
      return (isBearer ? undefined : await signedIn(presented)) ?? anonymousIdentity(presented);
    };
  },
});
