import type { AddressReader } from '../client-address.js';
import { readRequestId } from '../request-id.js';
import type { Middleware } from './context.js';

/** Finds out a request's id and its client's address. */
export function arrival(addressOf: AddressReader): Middleware {
  return (ctx, next) => {
    const { state } = ctx;
    state.requestId = readRequestId(ctx.req.headers['x-request-id']);
    state.clientAddress = addressOf(ctx.req);
    ctx.res.setHeader('X-Request-Id', state.requestId);
    return next();
  };
}
