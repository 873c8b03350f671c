import type { ConcurrencyLimit, RequestsInFlight } from '../in-flight.js';
import type { AdmittedState, CallMiddleware } from './context.js';

/** Limits how many requests of one user are in flight; the operator's own are not limited. */
export function limitConcurrency(
  limit: ConcurrencyLimit,
  inFlight: RequestsInFlight,
): CallMiddleware<AdmittedState> {
  return (ctx, next) => {
    const { identity, request } = ctx.state;
    const { tenant } = identity;
    if (typeof tenant === 'string' || limit.counts?.(request.query) === false) return next();
    return inFlight.run(limit, tenant.userId, ctx.res, next);
  };
}
