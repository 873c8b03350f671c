import { ForbiddenError } from '../../src/lib/errors.js';
import { configurableAuthentication } from './authentication.js';
import { session, type SessionCaller } from './session.js';

export interface Freshness {
  readonly maxAgeMs: number;
}

/** Checks the age of a sign-in. @throws ForbiddenError `REAUTHENTICATION_REQUIRED` above `maxAgeMs`. */
export function requireFresh({ signedInAt }: SessionCaller, { maxAgeMs }: Freshness): void {
  if (Date.now() - signedInAt.getTime() <= maxAgeMs) return;
  throw new ForbiddenError('Please sign in again first', 'REAUTHENTICATION_REQUIRED');
}

/** A session of a recent sign-in by any method, for actions that a stolen session must not reach. */
export const freshSession = configurableAuthentication<Freshness, SessionCaller>({
  name: 'fresh-session',
  schemes: session.schemes,
  errors: session.errors,
  prepare(freshness, configs) {
    const signedIn = session.prepare(configs);
    return async (request) => {
      const found = await signedIn(request);
      if (found !== undefined) requireFresh(found.caller, freshness);
      return found;
    };
  },
});
