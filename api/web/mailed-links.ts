import * as z from 'zod';
import { forgotPassword, resetPassword } from '../../src/accounts/accounts/reset-password.js';
import { resendVerification, verifyEmail } from '../../src/accounts/accounts/verify-email.js';
import { removeAgentsOf } from '../../src/agents/lifecycle/remove-agents-of.js';
import { UnavailableError } from '../../src/lib/errors.js';
import type { MailSettings } from '../../src/accounts/mail/settings.js';
import { anonymous } from '../auth/anonymous.js';
import { session } from '../auth/session.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { keepKeys } from '../views/keep-keys.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const links = area({ tag: 'Accounts', auth: anonymous });

/** Upper bound for the length of all tokens. */
const token = z.string().min(1).max(64);

/** Checks that mail can be sent. @throws UnavailableError in production without a mail server. */
export function requireMail({ available }: Pick<MailSettings, 'available'>): void {
  if (!available) throw new UnavailableError('Mail is not configured');
}

export function mailedLinkEndpoints({ database, settings }: WebDependencies) {
  return [
    links({
      method: 'POST',
      path: '/api/auth/forgot-password',
      operationId: 'forgotPassword',
      summary: 'Mail a link to set a new password; the answer is the same for every address',
      body: z.object({ email: z.string().max(254) }),
      limit: LIMITS.mail,
      responses: { 200: z.strictObject({ ok: z.literal(true), message: z.string() }) },
      errors: [503],
      async handler({ body }) {
        requireMail(settings.mail);
        await forgotPassword(database, body.email);
        const message = 'If an account has this address, a link was sent to it.';
        return reply(200, { ok: true, message });
      },
    }),
    links({
      method: 'POST',
      path: '/api/auth/reset-password',
      operationId: 'resetPassword',
      summary:
        'Set a new password by the token of a mail, without signing in; ends all sessions and API keys',
      body: z.object({ token, password: z.string().min(8).max(1024), keepKeys }),
      limit: LIMITS.resetPassword,
      responses: { 200: z.strictObject({ ok: z.literal(true) }) },
      async handler({ body, origin }) {
        await resetPassword(database, { ...body, origin }, removeAgentsOf);
        return reply(200, { ok: true });
      },
    }),
    links({
      method: 'POST',
      path: '/api/auth/verify-email',
      operationId: 'verifyEmail',
      summary: 'Confirm your address, or your new address, by the token of a mail',
      auth: session,
      body: z.strictObject({ token }),
      limit: LIMITS.signIn,
      responses: { 200: z.strictObject({ ok: z.literal(true), email: z.string() }) },
      async handler({ body, caller, origin }) {
        const by = { userId: caller.user.id, sessionId: caller.sessionId };
        const email = await verifyEmail(database, by, body.token, origin);
        return reply(200, { ok: true, email });
      },
    }),
    links({
      method: 'POST',
      path: '/api/auth/verify-email/resend',
      operationId: 'resendVerification',
      summary: 'Mail the link that confirms your address again',
      auth: session,
      limit: LIMITS.mail,
      responses: { 200: z.strictObject({ ok: z.literal(true) }) },
      errors: [503],
      async handler({ caller }) {
        requireMail(settings.mail);
        await resendVerification(database, caller.user.id);
        return reply(200, { ok: true });
      },
    }),
  ];
}
