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
  prepare(configs) {
    const signedIn = session.prepare(configs);
    return async (request) => (await signedIn(request)) ?? anonymousIdentity(request);
  },
});
