import type { Plan } from '../../src/types/plans.js';
import type { SignedInUser } from '../../src/accounts/accounts/sign-in.js';
import { ForbiddenError } from '../../src/lib/errors.js';
import { apiKey } from './api-key.js';
import { configurableAuthentication } from './authentication.js';
import { bearerOf } from './bearer-token.js';
import { csrfGuard } from './csrf.js';
import { readSessionCookie, SESSION_COOKIE } from './session-cookie.js';

export interface Person {
  readonly user: SignedInUser;
  readonly plan: Plan | undefined;
}

export interface SessionCaller extends Person {
  readonly kind: 'session';
  /** The session's id; not a credential. */
  readonly sessionId: string;
  readonly signedInAt: Date;
  /** The value that `x-csrf-token` must have on a state-changing request from another site. */
  readonly csrfToken: string;
}

export interface Sessions {
  /** Finds an unexpired session by its token. */
  find(token: string): Promise<Omit<SessionCaller, 'kind'> | undefined>;
  /** The listener's public URL; its origin counts as same-origin. */
  readonly publicUrl?: string | undefined;
}

/**
 * A browser's session cookie; state-changing requests from another site also need its CSRF token. With a
 * bearer token the cookie is ignored, and a user's API key is rejected.
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
        throw new ForbiddenError('API keys are not accepted here: sign in', 'SESSION_REQUIRED');
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
