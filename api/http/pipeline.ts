import Router from '@koa/router';
import type Koa from 'koa';
import { BadRequestError, MisdirectedRequestError, NotFoundError } from '../../src/lib/errors.js';
import { meansUs } from '../../src/platform/http/own-names.js';
import type { AuthenticationConfigs } from '../auth/authentication.js';
import { watchAccess } from './access-log.js';
import { Admission, type AdmissionOptions } from './admission.js';
import type { Arrival, ArrivalContext } from './arrival.js';
import type { AddressReader } from './client-address.js';
import type { Endpoint } from './endpoint.js';
import { planOf, type Plan } from './endpoint-plan.js';
import { routeOf } from './endpoint-request.js';
import { Handling, type HandlingOptions } from './handling.js';
import { jsonAnswer, type Answer } from './presenter.js';
import { limitsOf, type WideLimit } from './rate-limit.js';
import { readRequestId } from './request-id.js';
import { SECURITY_HEADERS } from './security-headers.js';
import { sendAnswer } from './send-answer.js';
import { UnderWay } from './under-way.js';

export interface PipelineOptions extends AdmissionOptions, HandlingOptions {
  readonly endpoints: readonly Endpoint[];
  readonly limits: readonly WideLimit[];
  readonly ownNames: ReadonlySet<string>;
  readonly addressOf: AddressReader;
  readonly configs: AuthenticationConfigs;
  readonly production: boolean;
}

/**
 * Builds the middleware: request id, access log, security headers, host, rate limit, authentication,
 * body, validation, tenant, handler, presenter. A rejected request skips all later steps.
 */
export function pipeline(options: PipelineOptions): Koa.Middleware[] {
  const { log, server } = options;
  const admission = new Admission(options);
  const handling = new Handling(options);
  const router = routerOf(options, admission, handling);

  const arrive: Koa.Middleware = async (koaContext, next) => {
    // The router, which runs next, extends the same context.
    const ctx = koaContext as ArrivalContext;
    const requestId = readRequestId(ctx.req.headers['x-request-id']);
    const arrival: Arrival = {
      // The path as the router reads it: limits and endpoints must see the same path.
      path: ctx.path,
      search: ctx.querystring,
      requestId,
      clientAddress: options.addressOf(ctx.req),
    };
    watchAccess(ctx, { log, arrival });
    ctx.res.setHeader('X-Request-Id', requestId);
    for (const [name, value] of SECURITY_HEADERS) ctx.res.setHeader(name, value);
    let result: Answer;
    try {
      if (!meansUs(ctx.req, options.ownNames)) throw new MisdirectedRequestError();
      result = await answer(ctx, arrival, next);
    } catch (error) {
      result = handling.failed(error, requestId, arrival.endpoint);
    }
    sendAnswer(ctx, result, server);
  };

  /** Runs the router, and returns the endpoint's answer, or an error if no endpoint matches. */
  async function answer(ctx: ArrivalContext, arrival: Arrival, next: Koa.Next): Promise<Answer> {
    // The router passes on malformed paths; no declared path needs such encoding.
    if (isDecodable(arrival.path)) {
      ctx.state.arrival = arrival;
      await next();
      if (arrival.answer) return arrival.answer;
    }
    admission.guard(ctx, arrival);
    await admission.count(limitsOf(arrival, options.limits), ctx, arrival.clientAddress);
    if (ctx.state.arrival === undefined) throw new BadRequestError('The request path is not valid');
    const methods = (ctx.matched ?? []).flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new NotFoundError();
    return wrongMethod(methods, ctx.method);
  }

  return [arrive, router.routes() as Koa.Middleware];
}

/** Creates the router that dispatches requests to the endpoints' handlers. */
function routerOf(options: PipelineOptions, admission: Admission, handling: Handling) {
  const underWay = new UnderWay();
  // Strict matching: limits and handlers see the same path, so that no alternative spelling bypasses a
  // limit.
  const router = new Router<ArrivalContext['state']>({ strict: true, sensitive: true });
  // Literal paths first, so that `/api/agents/clone` matches before `/api/agents/:id`.
  const literalFirst = options.endpoints.toSorted((a, b) => parameters(a) - parameters(b));
  for (const endpoint of literalFirst) {
    if (endpoint.idempotent && options.idempotency === undefined) {
      throw new TypeError(
        `${routeOf(endpoint)} accepts Idempotency-Key: its listener needs \`secrets\``,
      );
    }
    const plan = planOf(endpoint, options);
    router.register(endpoint.path, [endpoint.method], async (ctx: ArrivalContext) => {
      const { arrival } = ctx.state;
      if (arrival) arrival.answer = await ask(plan, ctx, arrival);
    });
  }
  return router;

  async function ask(plan: Plan, ctx: ArrivalContext, arrival: Arrival): Promise<Answer> {
    const { atOnce } = plan.endpoint;
    arrival.endpoint = plan.endpoint;
    const { identity, request } = await admission.admit(plan, ctx, arrival);
    const { tenant } = identity;
    if (
      atOnce === undefined ||
      typeof tenant === 'string' ||
      atOnce.counts?.(request.query) === false
    ) {
      return handling.once(plan, request, identity);
    }
    const run = () => handling.once(plan, request, identity);
    return underWay.run(atOnce, tenant.userId, ctx.res, run);
  }
}

const parameters = ({ path }: Endpoint): number => path.split('/:').length - 1;

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

function wrongMethod(known: readonly string[], method: string): Answer {
  const allowed = new Set([...known.toSorted(), 'OPTIONS']);
  const headers = { Allow: [...allowed].join(', ') };
  if (method !== 'OPTIONS') return jsonAnswer(405, { error: 'Method not allowed' }, headers);
  return { status: 204, headers, contentType: undefined, body: undefined };
}
