import * as z from 'zod';
import { ADMIN_LINK_PATH, useAdminLink } from '../../src/accounts/accounts/admin-links.js';
import { isEmail, normalizeEmail } from '../../src/accounts/accounts/email.js';
import { registerAccount } from '../../src/accounts/accounts/register.js';
import { createSession, deleteSession } from '../../src/accounts/accounts/sessions.js';
import { verifyPassword } from '../../src/accounts/accounts/sign-in.js';
import { ForbiddenError, UnauthorizedError } from '../../src/lib/errors.js';
import { networksOf } from '../../src/platform/http/client-networks.js';
import { anonymous } from '../auth/anonymous.js';
import { optionalSession } from '../auth/optional-session.js';
import { session } from '../auth/session.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { clearSessionCookie, readSessionCookie } from '../auth/session-cookie.js';
import { passwordStrategy } from '../auth/password-strategy.js';
import { SignIn } from '../auth/sign-in.js';
import { replySignedIn, signedIn, signInHeaders, signInPlace } from './sign-in-place.js';
import { isAutomated } from './bot-detection.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const signedInUser = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    email: z.string(),
    isAdmin: z.boolean(),
  })
  .meta({ id: 'SignedInUser' });

/** Audit log subject if the entered text is not an address. */
const NO_ADDRESS = '(no address)';

const accounts = area({ tag: 'Accounts', auth: anonymous });

/** Creates the endpoints for registration and sign-in by password (spec 4.1). */
export function accountEndpoints({ settings, database, refusals }: WebDependencies) {
  const signIn = new SignIn([
    passwordStrategy((shown) => verifyPassword(database, shown, settings.accounts)),
  ]);
  const secure = settings.accounts.sessionCookieSecure;
  return [
    accounts({
      method: 'POST',
      path: '/api/register',
      operationId: 'register',
      summary: 'Create an account, without signing in',
      idempotent: true,
      headers: z.object({ 'user-agent': z.string().optional() }),
      body: z.object({
        email: z.string().max(254),
        password: z.string().min(8),
        name: z.string().max(200).optional(),
        referralCode: z
          .string()
          .max(20)
          .regex(/^[a-z0-9-]+$/i, { error: 'referralCode may hold letters, digits and hyphens' })
          .optional(),
        website: z
          .string()
          .max(200)
          .optional()
          .describe('Honeypot: leave empty; hidden from people'),
      }),
      limit: LIMITS.register,
      responses: { 200: z.strictObject({ id: z.string(), email: z.string(), name: z.string() }) },
      errors: [403, 409],
      async handler({ body, headers, clientAddress, origin }) {
        if (settings.accounts.botDetection && isAutomated(headers['user-agent'], body.website)) {
          throw new ForbiddenError('Automated requests are not allowed', 'AUTOMATED_REQUEST');
        }
        const { id, email, name } = await registerAccount(
          database,
          { ...body, from: networksOf(clientAddress), origin },
          settings.accounts,
          settings.mail,
        );
        return reply(200, { id, email, name });
      },
    }),
    accounts({
      method: 'POST',
      path: '/api/auth/login',
      operationId: 'signIn',
      summary: 'Sign in by password',
      headers: signInHeaders,
      body: z.object({ email: z.string().min(1).max(254), password: z.string().min(1).max(1024) }),
      limit: LIMITS.signIn,
      responses: { 200: signedIn },
      errors: [401],
      async handler(request) {
        const { body, clientAddress: address, origin } = request;
        const proof = await signIn.by('local', { body, query: {}, origin });
        const made = proof && (await createSession(database, proof, signInPlace(request)));
        if (!made) {
          const email = normalizeEmail(body.email);
          // Some users type their password here, so only a valid address is logged.
          const subject = isEmail(email) ? email : NO_ADDRESS;
          refusals.note({ action: 'sign-in.failed', subject, address });
          throw new UnauthorizedError('Invalid email or password');
        }
        return replySignedIn(proof.user, made, secure);
      },
    }),
    accounts({
      method: 'GET',
      path: '/api/auth/session',
      operationId: 'getSession',
      summary: 'Get the signed-in user, with the CSRF token for cross-site requests',
      auth: optionalSession,
      responses: {
        200: z.strictObject({ user: signedInUser.nullable(), csrfToken: z.string().optional() }),
      },
      handler({ caller }) {
        if (caller.kind !== 'session') return reply(200, { user: null });
        return reply(200, { user: caller.user, csrfToken: caller.csrfToken });
      },
    }),
    accounts({
      method: 'POST',
      path: ADMIN_LINK_PATH,
      operationId: 'becomeAdmin',
      summary: "Become an admin, by the token of your address's link",
      auth: session,
      body: z.strictObject({ token: z.string().max(64) }),
      limit: LIMITS.signIn,
      responses: { 200: z.strictObject({ isAdmin: z.literal(true) }) },
      errors: [404],
      async handler({ body, caller, origin }) {
        await useAdminLink(database, caller.user, body.token, origin);
        return reply(200, { isAdmin: true });
      },
    }),
    accounts({
      method: 'POST',
      path: '/api/auth/signout',
      operationId: 'signOut',
      summary: 'Sign out',
      auth: optionalSession,
      headers: z.object({ cookie: z.string().optional() }),
      responses: { 200: z.strictObject({ ok: z.literal(true) }) },
      async handler({ caller, headers, origin }) {
        const token = caller.kind === 'session' ? readSessionCookie(headers.cookie) : undefined;
        if (token !== undefined) await deleteSession(database, token, origin);
        return reply(200, { ok: true }, { 'Set-Cookie': clearSessionCookie(secure) });
      },
    }),
  ];
}
