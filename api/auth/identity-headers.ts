import type { IncomingMessage } from 'node:http';
import { BadRequestError } from '../../src/lib/errors.js';

/** Length of the database columns for user ids. */
const MAX_USER_ID = 255;

/** The identity that a request claims; valid only from callers that may speak for others. */
export interface ClaimedIdentity {
  /** From `x-user-id` and `x-user-email`; absent without `x-user-id`. */
  readonly user: { readonly id: string; readonly email?: string } | undefined;
  /** From `x-user-email`, even without `x-user-id`. */
  readonly email: string | undefined;
  /** From `x-user-plan`, unparsed. */
  readonly plan: string | undefined;
  /** From `x-billing-subscription-id`. */
  readonly subscriptionId: string | undefined;
}

export function readIdentityHeaders(request: IncomingMessage): ClaimedIdentity {
  const id = headerOf(request, 'x-user-id');
  if (id !== undefined && id.length > MAX_USER_ID) {
    throw new BadRequestError(`x-user-id must be at most ${MAX_USER_ID} characters`);
  }
  const email = headerOf(request, 'x-user-email');
  return {
    user: id === undefined ? undefined : { id, ...(email && { email }) },
    email,
    plan: headerOf(request, 'x-user-plan'),
    subscriptionId: headerOf(request, 'x-billing-subscription-id'),
  };
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
