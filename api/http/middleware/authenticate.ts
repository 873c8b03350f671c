import { ForbiddenError, UnauthorizedError } from '../../../src/lib/errors.js';
import type { Authenticate, Caller, Identity } from '../../auth/authentication.js';
import { bearerOf } from '../../auth/bearer-token.js';
import { requireScope, type RequiredScope } from '../../auth/key-scope.js';
import type { Middleware } from './context.js';

/**
 * Finds the caller, and checks the scopes of an API key.
 * @param onKeyRefused is called for each key that opens nothing.
 */
export function authenticate(
  way: Authenticate<Caller>,
  keyScope: RequiredScope | undefined,
  onKeyRefused: (address: string) => void,
): Middleware {
  return async (ctx, next) => {
    const { bytes: body, clientAddress } = ctx.state;
    let identity: Identity | undefined;
    try {
      const found = way({ request: ctx.req, clientAddress, body });
      identity = found instanceof Promise ? await found : found;
      if (identity === undefined) throw new UnauthorizedError();
    } catch (error) {
      const isAnswer = error instanceof UnauthorizedError || error instanceof ForbiddenError;
      if (isAnswer && bearerOf(ctx.req) !== undefined) onKeyRefused(clientAddress);
      throw error;
    }
    ctx.state.identity = identity;
    requireScope(identity, keyScope);
    await next();
  };
}
