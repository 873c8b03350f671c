import Router from '@koa/router';
import type Koa from 'koa';
import compose from 'koa-compose';
import type { NoteRequest } from '../../src/platform/http/request-seconds.js';
import type { AuthenticationConfigs } from '../auth/authentication.js';
import { acceptsApiKeys } from '../auth/key-scope.js';
import { formatOf } from './body-format.js';
import type { BodyMemory } from './body-memory.js';
import { admitted, callsOf, passCalls, when, type CallParts } from './calls.js';
import type { AddressReader } from './client-address.js';
import type { Endpoint } from './endpoint.js';
import { routeOf } from './endpoint-request.js';
import { accessLog } from './middleware/access-log.js';
import { arrival } from './middleware/arrival.js';
import { authenticate } from './middleware/authenticate.js';
import { receiveBody } from './middleware/body.js';
import type { Middleware, PresentedState } from './middleware/context.js';
import { setErrorForm } from './middleware/error-form.js';
import { isDecodable, noEndpoint } from './middleware/no-endpoint.js';
import { ownNames } from './middleware/own-names.js';
import { requireOwnUser } from './middleware/own-user-path.js';
import {
  limitAddress,
  limitCallerRate,
  limitRate,
  limitRefusals,
  limitUnknownPaths,
} from './middleware/rate-limit.js';
import { respond } from './middleware/respond.js';
import { securityHeaders } from './middleware/security-headers.js';
import { validate } from './middleware/validate.js';
import { namesUser } from './names-user.js';
import { limitsOf } from './rate-limit.js';
import type { Server } from './server.js';
import { RequestsInFlight } from './in-flight.js';

export interface PipelineOptions extends Omit<CallParts, 'inFlight'> {
  readonly endpoints: readonly Endpoint[];
  readonly ownNames: ReadonlySet<string>;
  readonly addressOf: AddressReader;
  readonly configs: AuthenticationConfigs;
  /** Is called for each key that opens nothing. */
  readonly onKeyRefused: (address: string) => void;
  readonly bodies: BodyMemory;
  readonly server: Server;
  readonly hstsSubdomains: boolean;
  /** Notes the duration of each request. */
  readonly noteRequest: NoteRequest | undefined;
}

/** Mounts the middlewares of every request on a Koa application, in their order. */
export function usePipeline(app: Koa, options: PipelineOptions): void {
  const { limiter, limits, log } = options;
  app.use(arrival(options.addressOf));
  app.use(accessLog(log, options.noteRequest));
  app.use(securityHeaders(options));
  app.use(respond(options));
  app.use(ownNames(options.ownNames));
  app.use(routes(options));
  // Requests without an endpoint:
  app.use(limitAddress(limiter));
  app.use(limitUnknownPaths(limiter, limits));
  app.use(noEndpoint());
}

/** Routes each request to the middlewares of its endpoint. */
function routes(options: PipelineOptions) {
  // Strict and case-sensitive, so that no second spelling of a path escapes its limits.
  const router = new Router<PresentedState>({ strict: true, sensitive: true });
  const shared: Shared = {
    ...options,
    inFlight: new RequestsInFlight(),
  };
  // Literal paths first, so that `/api/agents/clone` matches before `/api/agents/:id`.
  const literalFirst = options.endpoints.toSorted((a, b) => parameters(a) - parameters(b));
  for (const endpoint of literalFirst) {
    router.register(endpoint.path, [endpoint.method], endpointPipeline(endpoint, shared));
  }
  const route = router.routes();
  return (ctx: Parameters<typeof route>[0], next: Koa.Next): unknown =>
    isDecodable(ctx.path) ? route(ctx, next) : next();
}

interface Shared extends PipelineOptions, CallParts {}

/** Composes an endpoint's middlewares. A refused request never reaches the later ones. */
function endpointPipeline(endpoint: Endpoint, shared: Shared) {
  const { auth, errorForm, keyScope, limitOfCaller, limitOfRefusals } = endpoint;
  const { bodies, configs, database, limiter, server } = shared;
  const limits = limitsOf(endpoint, shared.limits);
  const format = endpoint.body && formatOf(endpoint.body);
  if (keyScope === undefined && acceptsApiKeys(auth)) {
    throw new TypeError(`${routeOf(endpoint)} accepts API keys: it must declare \`keyScope\``);
  }

  const body = when(endpoint.method !== 'GET', () => receiveBody(format, bodies, server.bounds));
  const isProof = auth.proof === 'body';
  const middlewares: Middleware<PresentedState>[] = [
    when(errorForm, setErrorForm),
    limitAddress(limiter),
    when(limits.length > 0, () => limitRate(limiter, limits)),
    isProof ? body : [],
    authenticate(auth.prepare(configs), keyScope, shared.onKeyRefused),
    when(limitOfCaller, (limit) => limitCallerRate(limiter, [limit])),
    when(limitOfRefusals, (limit) => limitRefusals(limiter, limit)),
    isProof ? [] : body,
    validate(endpoint, format, database),
    when(namesUser(endpoint.path), requireOwnUser),
    when(endpoint.calls, (calls) => passCalls(callsOf(calls, shared))),
    admitted(endpoint, shared),
  ].flat();
  // Composed once, because the router composes for each request.
  return compose(middlewares);
}

const parameters = ({ path }: Endpoint): number => path.split('/:').length - 1;
