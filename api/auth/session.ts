import type { Plan } from '../../src/accounts/plans.js';
import type { SignedInUser } from '../../src/accounts/sign-in.js';
import { configurableAuthentication } from './authentication.js';
import { csrfGuard } from './csrf.js';
import { readSessionCookie, SESSION_COOKIE } from './session-cookie.js';

/** A signed-in person. */
export interface SessionCaller {
  readonly kind: 'session';
  /** The session's, which opens nothing. */
  readonly sessionId: string;
  /** When they proved who they are. */
  readonly signedInAt: Date;
  readonly user: SignedInUser;
  /** The plan that the user is on, if any. */
  readonly plan: Plan | undefined;
  /** What `x-csrf-token` must say on a state-changing request from another site. */
  readonly csrfToken: string;
}

/** Whose limits count for somebody: administrators have the highest plan's. */
export const planOfSession = ({ plan, user }: SessionCaller): Plan | undefined =>
  user.isAdmin ? 'network' : plan;

export interface Sessions {
  /** Finds an unexpired session by its token. */
  find(token: string): Promise<Omit<SessionCaller, 'kind'> | undefined>;
  /** Where people reach the listener: its origin counts as our own site. */
  readonly publicUrl?: string | undefined;
}

/** The session cookie of a browser; a change asked for from another site needs its CSRF token too. */
export const session = configurableAuthentication<Sessions, SessionCaller>({
  name: 'session',
  schemes: [{ session: { type: 'apiKey', in: 'cookie', name: SESSION_COOKIE } }],
  errors: [401],
  errorsOfChanges: [403],
  prepare(sessions) {
    const checkCsrf = csrfGuard(sessions.publicUrl);
    return async ({ request }) => {
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
