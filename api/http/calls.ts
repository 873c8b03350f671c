import compose from 'koa-compose';
import type { Logger } from 'pino';
import type { Database } from '../../src/platform/database/database.js';
import { requireScope } from '../auth/key-scope.js';
import type { Answer } from './answer.js';
import { formatOf } from './body-format.js';
import { errorStatuses } from './derived-errors.js';
import type { CallEndpoint, Endpoint, Given } from './endpoint.js';
import { HandlerRequest, routeOf } from './endpoint-request.js';
import { loggedErrorAnswer } from './error-answer.js';
import type { OncePerKey } from './idempotency.js';
import type { RequestsInFlight } from './in-flight.js';
import type { Limiter } from './limiter.js';
import { limitConcurrency } from './middleware/concurrency-limit.js';
import type {
  AdmittedState,
  CallContext,
  CallMiddleware,
  Middleware,
  PresentedState,
} from './middleware/context.js';
import { handle } from './middleware/handle.js';
import { idempotent } from './middleware/idempotency.js';
import { present } from './middleware/present.js';
import { limitCallerRate, limitRate } from './middleware/rate-limit.js';
import { errorJson, presenter } from './presenter.js';
import { limitsOf, type WideLimit } from './rate-limit.js';
import { refuseUnstorable } from './storable.js';
import { validator } from './validation.js';

/** Parts of a listener that endpoints need, however they are called. */
export interface CallParts {
  readonly limits: readonly WideLimit[];
  readonly limiter: Limiter;
  readonly inFlight: RequestsInFlight;
  /** Undefined if no endpoint accepts `Idempotency-Key`. */
  readonly idempotency: OncePerKey | undefined;
  readonly database: Database | undefined;
  readonly production: boolean;
  readonly log: Logger;
}

/** Makes a middleware for an endpoint that needs it, and none for others. */
export function when<Need, Made>(
  need: Need | false | undefined,
  make: (need: Need) => Made,
): Made[] {
  return need === false || need === undefined ? [] : [make(need)];
}

/** Returns the middlewares for a checked request: from the limit of requests in flight to the handler. */
export function admitted(endpoint: Endpoint, parts: CallParts): CallMiddleware<PresentedState>[] {
  const { atOnce, idempotent: takesKey } = endpoint;
  const { idempotency, inFlight, log } = parts;
  const answers = presenter(endpoint, errorStatuses(endpoint), parts);
  if (takesKey && idempotency === undefined) {
    throw new TypeError(
      `${routeOf(endpoint)} accepts Idempotency-Key: its listener needs \`secrets\``,
    );
  }
  return [
    when(atOnce, (limit) => limitConcurrency(limit, inFlight)),
    when(takesKey && idempotency, (once) => idempotent(routeOf(endpoint), once, answers)),
    present(answers, log),
    handle(endpoint),
  ].flat();
}

interface CalledState extends PresentedState {
  given: Given;
}

type Call = (ctx: CallContext<AdmittedState>, given: Given, isFirst: boolean) => Promise<Answer>;

/** Composes the calls of endpoints, once: each request passes through them as often as its handler calls. */
export function callsOf(
  endpoints: readonly Endpoint[],
  parts: CallParts,
): ReadonlyMap<Endpoint, Call> {
  return new Map(endpoints.map((endpoint) => [endpoint, callOf(endpoint, parts)]));
}

/** Lets a handler call endpoints. */
export function passCalls(calls: ReadonlyMap<Endpoint, Call>): Middleware<AdmittedState> {
  return (ctx, next) => {
    let isFirst = true;
    const callEndpoint: CallEndpoint = (endpoint, given) => {
      const call = calls.get(endpoint);
      if (call === undefined) throw new TypeError(`${routeOf(endpoint)} is not in \`calls\``);
      const answer = call(ctx, given, isFirst);
      isFirst = false;
      return answer;
    };
    ctx.state.request.call = callEndpoint;
    return next();
  };
}

function callOf(endpoint: Endpoint, parts: CallParts): Call {
  const { limiter, log } = parts;
  const middlewares = (limits: ReturnType<typeof limitsOf>): CallMiddleware<CalledState>[] =>
    [
      checkScope(endpoint),
      when(limits.length > 0 && limits, (needed) => limitRate(limiter, needed)),
      when(endpoint.limitOfCaller, (limit) => limitCallerRate(limiter, [limit])),
      checkGiven(endpoint, parts),
      admitted(endpoint, parts),
    ].flat();
  // The request already counts in the limits for all paths, which covers its first call.
  const first = compose(middlewares(limitsOf(endpoint, [])));
  const further = compose(middlewares(limitsOf(endpoint, parts.limits)));

  return async ({ req, res, state: outer }, given, isFirst) => {
    const { clientAddress, identity, requestId } = outer;
    // The middlewares set the rest, each before another one reads the property.
    const state = { clientAddress, identity, requestId, given } as CalledState;
    // Headers of limits are those of the request.
    const ctx: CallContext<CalledState> = { req, res, state, set: () => undefined };
    try {
      await (isFirst ? first : further)(ctx);
      return state.answer;
    } catch (error) {
      return errorJson(endpoint.errorForm, loggedErrorAnswer(error, requestId, log));
    }
  };
}

const checkScope =
  ({ keyScope }: Endpoint): CallMiddleware<CalledState> =>
  ({ state }, next) => {
    requireScope(state.identity, keyScope);
    return next();
  };

/** Makes the handler's request of the given parts. */
function checkGiven(endpoint: Endpoint, { database }: CallParts): CallMiddleware<CalledState> {
  const { body, headers, params, query } = endpoint;
  const checkBody = body && validator(formatOf(body).schema, 'body');
  const checkHeaders = headers && validator(headers, 'headers');
  const checkParams = params && validator(params, 'path');
  const checkQuery = query && validator(query, 'query');

  return ({ req, res, state }, next) => {
    const { clientAddress, given, identity, requestId } = state;
    for (const [part, value] of Object.entries(given)) refuseUnstorable(value, part);
    state.request = new HandlerRequest({
      endpoint,
      incoming: req,
      response: res,
      database,
      identity,
      requestId,
      clientAddress,
      params: checkParams?.(given.params),
      query: checkQuery?.(given.query),
      headers: checkHeaders?.(req.headers),
      body: checkBody?.(given.body),
    });
    return next();
  };
}
