import { Readable } from 'node:stream';
import Router, { type RouterContext } from '@koa/router';
import type Koa from 'koa';
import type { Logger } from 'pino';
import { describeError } from '../../src/describe-error.js';
import type { Database } from '../../src/database/database.js';
import {
  BadRequestError,
  ForbiddenError,
  ForeignFaultError,
  MisdirectedRequestError,
  NotFoundError,
  ServiceError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../../src/errors.js';
import { meansUs } from '../../src/http/own-names.js';
import type {
  AuthenticationConfigs,
  AuthenticationRequest,
  Identity,
} from '../auth/authentication.js';
import { bearerOf } from '../auth/bearer-token.js';
import { watchAccess } from './access-log.js';
import type { AddressReader } from './client-address.js';
import { BodyMemory } from './body-memory.js';
import type { Endpoint } from './endpoint.js';
import { planOf, type Plan } from './endpoint-plan.js';
import { HandlerRequest, routeOf } from './endpoint-request.js';
import { errorAnswer, type ErrorAnswer } from './error-answer.js';
import { hashRequest, readIdempotencyKey, type OncePerKey } from './idempotency.js';
import { CLIENT_LEFT, errorJson, jsonAnswer, type Answer } from './presenter.js';
import type { Limiter, Verdict } from './limiter.js';
import { limitsOf, type RateLimit, type WideLimit } from './rate-limit.js';
import { readBody } from './read-body.js';
import { readRequestId } from './request-id.js';
import { SECURITY_HEADERS } from './security-headers.js';
import type { Server } from './server.js';
import { UnderWay } from './under-way.js';

export interface PipelineOptions {
  readonly endpoints: readonly Endpoint[];
  readonly limits: readonly WideLimit[];
  readonly limiter: Limiter;
  readonly ownNames: ReadonlySet<string>;
  readonly addressOf: AddressReader;
  readonly configs: AuthenticationConfigs;
  /** Undefined where no endpoint takes `Idempotency-Key`. */
  readonly idempotency: OncePerKey | undefined;
  readonly database: Database | undefined;
  readonly log: Logger;
  readonly production: boolean;
  readonly server: Server;
  /** Is told of every key that opens nothing. */
  readonly onKeyRefused: (address: string) => void;
}

/** What is known of a request before its endpoint is asked, and what becomes of it. */
interface Arrival {
  readonly path: string;
  readonly search: string;
  readonly requestId: string;
  readonly clientAddress: string;
  endpoint?: Endpoint;
  /** Once it is known. */
  caller?: string;
  answer?: Answer;
}

type Context = RouterContext<Koa.DefaultState & { arrival?: Arrival }>;

/**
 * The way of every request: request id, access log, security headers, name, rate limit, authentication,
 * body, validation, tenant, handler, presenter. What is refused costs nothing of what comes after it.
 */
export function pipeline(options: PipelineOptions): Koa.Middleware[] {
  const { idempotency, log, limiter, server } = options;
  const underWay = new UnderWay();
  const bodies = new BodyMemory(server.bounds);
  // Exactly as declared: what a limit sees is what a handler gets, so no second spelling of a path
  // escapes its limits.
  const router = new Router<Context['state']>({ strict: true, sensitive: true });
  // Literal paths first, so that they win over parameters: `/api/agents/clone` over `:id`.
  const literalFirst = options.endpoints.toSorted((a, b) => parameters(a) - parameters(b));
  for (const endpoint of literalFirst) {
    if (endpoint.idempotent && idempotency === undefined) {
      throw new TypeError(`${routeOf(endpoint)} takes Idempotency-Key: its listener needs secrets`);
    }
    const plan = planOf(endpoint, options);
    router.register(endpoint.path, [endpoint.method], async (ctx: Context) => {
      const { arrival } = ctx.state;
      if (arrival) arrival.answer = await ask(plan, ctx, arrival);
    });
  }

  /** Lets the router find the endpoint, and says what there is if there is none. */
  async function answer(ctx: Context, arrival: Arrival, next: Koa.Next): Promise<Answer> {
    // The router hands on what it cannot decode; nothing declared here is spelt like that.
    if (isDecodable(arrival.path)) {
      ctx.state.arrival = arrival;
      await next();
      if (arrival.answer) return arrival.answer;
    }
    guard(ctx, arrival);
    await count(limitsOf(arrival, options.limits), ctx, arrival.clientAddress);
    if (ctx.state.arrival === undefined) throw new BadRequestError('The path is not valid');
    const methods = (ctx.matched ?? []).flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new NotFoundError();
    return wrongMethod(methods, ctx.method);
  }

  /** @throws TooManyRequestsError for a request beyond one of the limits. */
  async function count(limits: readonly RateLimit[], ctx: Context, client: string) {
    heed(await limiter.check(limits, client), ctx);
  }

  /** @throws TooManyRequestsError for a request beyond what an address may ask in all. */
  function guard(ctx: Context, { clientAddress }: Arrival): void {
    heed(limiter.guard(clientAddress), ctx);
  }

  /** @throws UnauthorizedError, or what the way to authenticate refuses by. */
  async function authenticated(plan: Plan, shown: AuthenticationRequest): Promise<Identity> {
    try {
      const found = plan.authenticate(shown);
      const identity = found instanceof Promise ? await found : found;
      if (identity === undefined) throw new UnauthorizedError();
      return identity;
    } catch (error) {
      const isAnswer = error instanceof UnauthorizedError || error instanceof ForbiddenError;
      const hasKey = bearerOf(shown.request) !== undefined;
      if (isAnswer && hasKey) options.onKeyRefused(shown.clientAddress);
      throw error;
    }
  }

  /** Leads a request to its endpoint's handler. */
  async function ask(plan: Plan, ctx: Context, arrival: Arrival): Promise<Answer> {
    const { clientAddress, requestId, search } = arrival;
    const { endpoint } = plan;
    arrival.endpoint = endpoint;
    guard(ctx, arrival);
    if (plan.limits.length > 0) await count(plan.limits, ctx, clientAddress);
    const incoming = ctx.req;
    const { bodyFormat } = plan;
    const provedByBody = endpoint.auth.proof === 'body';
    const { paceBytes, paceMs } = server.bounds;
    const read = (isAnonymous: boolean, owner: string) => {
      const makeRoom = bodies.roomFor(owner, ctx.res);
      return readBody(incoming, bodyFormat, { isAnonymous, paceBytes, paceMs, makeRoom });
    };
    const proof = provedByBody ? await read(false, clientAddress) : undefined;
    const identity = await authenticated(plan, { request: incoming, clientAddress, body: proof });
    arrival.caller = identity.scope;
    if (plan.limitsOfCaller.length > 0 && identity.tenant !== 'platform') {
      await count(plan.limitsOfCaller, ctx, identity.scope);
    }
    const bytes = provedByBody
      ? proof
      : await read(identity.caller.kind === 'anonymous', ownerOf(identity));

    const params = plan.readParams(ctx.params);
    const query = plan.readQuery(search);
    const headers = plan.readHeaders(incoming.headers);
    const type = incoming.headers['content-type'] ?? '';
    const body = bodyFormat && (await bodyFormat.read(bytes, type));
    const request = new HandlerRequest({
      endpoint,
      incoming,
      response: ctx.res,
      database: options.database,
      params,
      query,
      headers,
      body,
      identity,
      requestId,
      clientAddress,
    });

    const { atOnce } = endpoint;
    const { tenant } = identity;
    if (atOnce === undefined || typeof tenant === 'string' || atOnce.counts?.(query) === false) {
      return once(plan, request, identity);
    }
    return underWay.run(atOnce, tenant.userId, ctx.res, () => once(plan, request, identity));
  }

  /** Has a request handled, or repeats the answer that its `Idempotency-Key` has already got. */
  function once(plan: Plan, request: HandlerRequest, identity: Identity): Promise<Answer> {
    const { endpoint } = plan;
    if (idempotency === undefined || !endpoint.idempotent) return handle(plan, request);
    const key = readIdempotencyKey(request.idempotencyKey);
    if (key === undefined || identity.keepsAnswer === true) return handle(plan, request);
    return idempotency(
      {
        caller: identity.scope,
        route: routeOf(endpoint),
        key,
        requestHash: hashRequest(request.params, request.query, request.body),
      },
      (keep) => {
        request.keepAnswer = (db, reply) => keep(db, plan.presenter.present(reply));
        return handle(plan, request);
      },
    );
  }

  /** Always ends in an answer: whoever keeps it for a repetition relies on that. */
  async function handle(plan: Plan, request: HandlerRequest): Promise<Answer> {
    const { endpoint, presenter } = plan;
    try {
      return presenter.present(await endpoint.handler(request));
    } catch (error) {
      // Nobody is there to be answered, and that is all that went wrong.
      if (request.signal.aborted && error === request.signal.reason) {
        return jsonAnswer(CLIENT_LEFT, {});
      }
      return error instanceof ServiceError
        ? refused(plan, error, request.requestId)
        : failed(error, request.requestId, endpoint);
    }
  }

  /** Not every error of the domain may come from every endpoint: that is declared as well. */
  function refused({ endpoint, presenter }: Plan, error: ServiceError, requestId: string): Answer {
    try {
      return presenter.presentError(told(error, requestId));
    } catch (undeclared) {
      return failed(undeclared, requestId, endpoint);
    }
  }

  /** The answer to an error, after the log has got what the caller must not see. */
  function told(error: unknown, requestId: string): ErrorAnswer {
    const answer = errorAnswer(error, requestId);
    if (answer.status >= 500) {
      const level = error instanceof ForeignFaultError ? 'debug' : 'error';
      log[level]({ requestId, error: describeError(error) }, 'failed');
    }
    return answer;
  }

  function failed(error: unknown, requestId: string, endpoint?: Endpoint): Answer {
    return errorJson(endpoint, told(error, requestId));
  }

  function send(ctx: Koa.Context, answer: Answer): void {
    const { status, headers, contentType, attachment, body } = answer;
    server.watch(ctx.res);
    const stream = body instanceof Readable ? body : undefined;
    const isHead = ctx.method === 'HEAD';
    if (isHead) stream?.destroy();
    // First the body, because Koa derives a status and a type from it.
    ctx.body = (isHead && stream ? null : body) ?? null;
    ctx.status = status;
    if (attachment !== undefined) ctx.attachment(attachment);
    if (contentType !== undefined) ctx.set('Content-Type', contentType);
    for (const name in headers) {
      const value = headers[name];
      if (value !== undefined) ctx.set(name, typeof value === 'string' ? value : [...value]);
    }
    if (server.closing) ctx.set('Connection', 'close');
    if (stream === undefined || isHead) return;
    server.track(stream);
    ctx.flushHeaders();
  }

  const arrive: Koa.Middleware = async (koaContext, next) => {
    // The router, which comes next, adds what it has found to the same context.
    const ctx = koaContext as Context;
    const requestId = readRequestId(ctx.req.headers['x-request-id']);
    const arrival: Arrival = {
      // As the router reads it: a limit must not see another path than the endpoint's.
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
      result = failed(error, requestId, arrival.endpoint);
    }
    send(ctx, result);
  };
  return [arrive, router.routes() as Koa.Middleware];
}

/** Whose memory it is: all that a user's keys, sessions and agents send is that user's. */
const ownerOf = ({ scope, tenant }: Identity): string =>
  typeof tenant === 'string' ? scope : `user:${tenant.userId}`;

const parameters = ({ path }: Endpoint): number => path.split('/:').length - 1;

function heed(verdict: Verdict | undefined, ctx: Context): void {
  if (verdict === undefined) return;
  ctx.set(verdict.headers);
  if (verdict.refusal !== undefined) throw new TooManyRequestsError(verdict.refusal);
}

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
