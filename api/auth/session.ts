import type { Plan } from '../../src/types/plans.js';
import type { SignedInUser } from '../../src/accounts/accounts/sign-in.js';
import { ForbiddenError } from '../../src/lib/errors.js';
import { apiKey } from './api-key.js';
import { configurableAuthentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';
import { csrfGuard } from './csrf.js';
import { readSessionCookie, SESSION_COOKIE } from './session-cookie.js';

/** A person who calls. */
export interface Person {
  readonly user: SignedInUser;
  /** The plan that the user is on, if any. */
  readonly plan: Plan | undefined;
}

/** A signed-in person. */
export interface SessionCaller extends Person {
  readonly kind: 'session';
  /** The session's, which opens nothing. */
  readonly sessionId: string;
  /** When they proved who they are. */
  readonly signedInAt: Date;
  /** What `x-csrf-token` must say on a state-changing request from another site. */
  readonly csrfToken: string;
}

export interface Sessions {
  /** Finds an unexpired session by its token. */
  find(token: string): Promise<Omit<SessionCaller, 'kind'> | undefined>;
  /** Where people reach the listener: its origin counts as our own site. */
  readonly publicUrl?: string | undefined;
}

/**
 * The session cookie of a browser; a change asked for from another site needs its CSRF token too. Where a
 * bearer is shown the cookie is not looked at, and a user's API key does not do.
 */
export const session = configurableAuthentication<Sessions, SessionCaller>({
  name: 'session',
  schemes: [{ session: { type: 'apiKey', in: 'cookie', name: SESSION_COOKIE } }],
  errors: [401, 403, 503],
  prepare(sessions, configs) {
    const checkCsrf = csrfGuard(sessions.publicUrl);
    const byKey = apiKey.prepare(configs);
    return async (presented) => {
      const { request } = presented;
      if (bearerOf(request) !== undefined) {
        if ((await byKey(presented)) === undefined) return undefined;
        throw new ForbiddenError('An API key does not do here: sign in', 'SESSION_REQUIRED');
      }
      const token = readSessionCookie(request.headers.cookie);
      const found = token === undefined ? undefined : await sessions.find(token);
      if (found === undefined) return undefined;
      const { user, plan, csrfToken, sessionId, signedInAt } = found;
      checkCsrf(request, csrfToken);
      const { id } = user;
      return {
        caller: { kind: 'session', sessionId, signedInAt, user, plan, csrfToken },
        tenant: { userId: id },
        scope: id,
      };
    };
  },
});
