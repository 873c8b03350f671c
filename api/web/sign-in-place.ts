import * as z from 'zod';
import type { NewSession, SignInOrigin } from '../../src/accounts/accounts/sessions.js';
import type { SignedInUser } from '../../src/accounts/accounts/sign-in.js';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import { readSessionCookie, serializeSessionCookie } from '../auth/session-cookie.js';
import { reply } from '../http/reply.js';

export const signInHeaders = z.object({
  cookie: z.string().optional(),
  'user-agent': z.string().optional(),
});

/** Returns the place that a request signs in from, and the session that it carries. */
export function signInPlace({
  headers,
  origin,
}: {
  readonly headers: z.infer<typeof signInHeaders>;
  readonly origin: RequestOrigin;
}): SignInOrigin {
  return {
    ...origin,
    userAgent: headers['user-agent'],
    replaces: readSessionCookie(headers.cookie),
  };
}

export const signedIn = z
  .strictObject({
    ok: z.literal(true),
    user: z.strictObject({ id: z.string(), name: z.string() }),
  })
  .meta({ id: 'SignedIn' });

/** Answers a sign-in with the cookie of its session. @param secure false only for plain HTTP. */
export const replySignedIn = ({ id, name }: SignedInUser, { token }: NewSession, secure: boolean) =>
  reply(
    200,
    { ok: true, user: { id, name } },
    { 'Set-Cookie': serializeSessionCookie(token, secure) },
  );
