import { TooManyRequestsError } from '../../../src/lib/errors.js';
import { QuotaLimiter } from '../../../src/lib/quota-limiter.js';
import { tighterOf, type Limiter, type Verdict } from '../limiter.js';
import { limitsOf, type RateLimit, type WideLimit } from '../rate-limit.js';
import type {
  AuthenticatedState,
  CallMiddleware,
  Context,
  Middleware,
  PresentedState,
} from './context.js';

export function limitAddress(limiter: Limiter): Middleware {
  return (ctx, next) => {
    const refused = limiter.guard(ctx.state.clientAddress);
    if (refused) obey(refused, ctx);
    return next();
  };
}

/** Limits how often one address may call the endpoint, and all that shares the limits with it. */
export function limitRate(limiter: Limiter, limits: readonly RateLimit[]): CallMiddleware {
  return async (ctx, next) => {
    const { state } = ctx;
    const verdict = await limiter.check(limits, state.clientAddress);
    if (verdict) {
      state.addressVerdict = verdict;
      obey(verdict, ctx);
    }
    await next();
  };
}

export function limitUnknownPaths(limiter: Limiter, limits: readonly WideLimit[]): Middleware {
  return (ctx, next) => limitRate(limiter, limitsOf({ path: ctx.path }, limits))(ctx, next);
}

/** Limits how often one user (over all keys and sessions) or agent may call the endpoint; the operator's own programs are not limited. */
export function limitCallerRate(
  limiter: Limiter,
  limits: readonly RateLimit[],
): CallMiddleware<AuthenticatedState> {
  return async (ctx, next) => {
    const { addressVerdict, identity } = ctx.state;
    if (identity.tenant !== 'platform') {
      const verdict = await limiter.check(limits, identity.limitedAs ?? identity.scope);
      if (verdict) obey(tighterOf(addressVerdict, verdict), ctx);
    }
    await next();
  };
}

/** Requests in flight for each refusal that the limit still admits: most requests are not refused. */
const IN_FLIGHT_FOR_EACH = 4;

/**
 * Limits how often one caller's valid requests end with 400 or 401: runs that are free, and guesses of keys.
 * Requests with another outcome are not counted. Requests in flight may all end so, and are therefore at most
 * `IN_FLIGHT_FOR_EACH` times as many as the limit still admits.
 */
export function limitRefusals(limiter: Limiter, limit: RateLimit): Middleware<PresentedState> {
  const inFlight = new QuotaLimiter({ perOwner: limit.max * IN_FLIGHT_FOR_EACH });
  return async (ctx, next) => {
    const { limitedAs, scope } = ctx.state.identity;
    const client = limitedAs ?? scope;
    const before = await limiter.check([limit], client, 0);
    if (before?.refusal !== undefined) obey(before, ctx);
    const refused = limit.max - (before?.tightest.remaining ?? limit.max);
    if (inFlight.refusing(client, refused * IN_FLIGHT_FOR_EACH + 1) !== undefined) {
      throw new TooManyRequestsError(limit.message, { max: limit.max, resetS: 1 });
    }
    const release = inFlight.take(client);
    try {
      await next();
      if (isRefusal(ctx.state.answer.status)) await limiter.check([limit], client);
    } finally {
      release();
    }
  };
}

const isRefusal = (status: number): boolean => status === 400 || status === 401;

function obey({ headers, refusal }: Verdict, ctx: Pick<Context, 'set'>): void {
  if (refusal) throw refusal;
  ctx.set(headers);
}
