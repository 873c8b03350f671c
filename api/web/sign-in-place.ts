import * as z from 'zod';
import type { SignInOrigin } from '../../src/accounts/accounts/sessions.js';
import { readSessionCookie } from '../auth/session-cookie.js';

export const signInHeaders = z.object({
  cookie: z.string().optional(),
  'user-agent': z.string().optional(),
});

/** Returns the place that a request signs in from, and the session that it carries. */
export function signInPlace({
  clientAddress,
  headers,
  requestId,
}: {
  readonly clientAddress: string;
  readonly headers: z.infer<typeof signInHeaders>;
  readonly requestId: string;
}): SignInOrigin {
  return {
    address: clientAddress,
    requestId,
    userAgent: headers['user-agent'],
    replaces: readSessionCookie(headers.cookie),
  };
}
