import { anonymousIdentity, type AnonymousCaller } from './anonymous.js';
import { authentication } from './authentication.js';
import { session, type SessionCaller } from './session.js';

/** A session where there is one. */
export const optionalSession = authentication<SessionCaller | AnonymousCaller>({
  name: 'optional-session',
  schemes: session.schemes,
  optional: true,
  errors: [],
  errorsOfChanges: session.errorsOfChanges,
  prepare(given) {
    const signedIn = session.prepare(given);
    return async (presented) => (await signedIn(presented)) ?? anonymousIdentity(presented);
  },
});
