import * as z from 'zod';
import type { SignInOrigin } from '../../src/accounts/accounts/sessions.js';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import { readSessionCookie } from '../auth/session-cookie.js';

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
