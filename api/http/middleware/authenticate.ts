import { ForbiddenError, UnauthorizedError } from '../../../src/lib/errors.js';
import type { Authenticate, Caller } from '../../auth/authentication.js';
import { bearerOf } from '../../auth/bearer-token.js';
import type { Middleware } from './context.js';

/** Finds out who calls. @param onKeyRefused is called for each key that opens nothing. */
export function authenticate(
  way: Authenticate<Caller>,
  onKeyRefused: (address: string) => void,
): Middleware {
  return async (ctx, next) => {
    const { bytes: body, clientAddress } = ctx.state;
    try {
      const found = way({ request: ctx.req, clientAddress, body });
      const identity = found instanceof Promise ? await found : found;
      if (identity === undefined) throw new UnauthorizedError();
      ctx.state.identity = identity;
    } catch (error) {
      const isAnswer = error instanceof UnauthorizedError || error instanceof ForbiddenError;
      if (isAnswer && bearerOf(ctx.req) !== undefined) onKeyRefused(clientAddress);
      throw error;
    }
    await next();
  };
}
