import type { ConcurrencyLimit, UnderWay } from '../under-way.js';
import type { AdmittedState, Middleware } from './context.js';

/** Limits how many requests of one user are in flight; the operator's own are not limited. */
export function limitConcurrency(
  limit: ConcurrencyLimit,
  underWay: UnderWay,
): Middleware<AdmittedState> {
  return (ctx, next) => {
    const { identity, request } = ctx.state;
    const { tenant } = identity;
    const counts = limit.counts?.(request.query) ?? true;
    if (typeof tenant === 'string' || !counts) return next();
    return underWay.run(limit, tenant.userId, ctx.res, next);
  };
}
