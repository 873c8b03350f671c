import * as z from 'zod';
import type { SignInPlace } from '../../src/accounts/accounts/sessions.js';
import { readSessionCookie } from '../auth/session-cookie.js';

/** What an endpoint that signs in reads of a request's headers. */
export const signInHeaders = z.object({
  cookie: z.string().optional(),
  'user-agent': z.string().optional(),
});

/** From where a request signs in, and which session it brings. */
export function signInPlace({
  clientAddress,
  headers,
  requestId,
}: {
  readonly clientAddress: string;
  readonly headers: z.infer<typeof signInHeaders>;
  readonly requestId: string;
}): SignInPlace {
  return {
    address: clientAddress,
    requestId,
    userAgent: headers['user-agent'],
    replaces: readSessionCookie(headers.cookie),
  };
}
