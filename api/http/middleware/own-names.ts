import { MisdirectedRequestError } from '../../../src/lib/errors.js';
import { isOwnHost } from '../../../src/platform/http/own-hosts.js';
import type { Middleware } from './context.js';

/** Refuses requests whose `Host` is not a name of this listener. */
export function ownNames(names: ReadonlySet<string>): Middleware {
  return (ctx, next) => {
    if (!isOwnHost(ctx.req, names)) throw new MisdirectedRequestError();
    return next();
  };
}
