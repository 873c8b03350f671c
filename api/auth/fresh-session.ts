import { ForbiddenError } from '../../src/lib/errors.js';
import { configurableAuthentication } from './authentication.js';
import { session, type SessionCaller } from './session.js';

/** For how long after signing in a session is fresh. */
export interface Freshness {
  /** Milliseconds. */
  readonly maxAgeMs: number;
}

/** @throws ForbiddenError with `REAUTHENTICATION_REQUIRED` when it is too long since they signed in. */
export function requireFresh({ signedInAt }: SessionCaller, { maxAgeMs }: Freshness): void {
  if (Date.now() - signedInAt.getTime() <= maxAgeMs) return;
  throw new ForbiddenError('Please sign in again first', 'REAUTHENTICATION_REQUIRED');
}

/**
 * A session of somebody who has signed in just now: for what a stolen one must not reach. Signing in
 * again, in any way, makes one.
 */
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
