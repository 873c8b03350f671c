import type { IncomingMessage, RequestListener } from 'node:http';
import Koa from 'koa';
import type { Logger } from 'pino';
import { describeError } from '../../src/lib/describe-error.js';
import { isOwnHost } from '../../src/platform/http/own-hosts.js';
import type { RequestSeconds } from '../../src/platform/http/request-seconds.js';
import type { HttpSettings } from '../../src/platform/http/settings.js';
import { readRelease } from '../../src/platform/process/release.js';
import type { Database } from '../../src/platform/database/database.js';
import { IdempotencyStore } from '../../src/platform/idempotency/idempotency-store.js';
import type { Refusals } from '../../src/platform/audit/refusals.js';
import type { SecretBox } from '../../src/platform/secrets/secret-box.js';
import { AuthenticationConfigs, type AuthenticationConfig } from '../auth/authentication.js';
import { bodyMemory, type BodyBudget } from './body-memory.js';
import { addressReader } from './client-address.js';
import type { Endpoint } from './endpoint.js';
import { idempotency } from './idempotency.js';
import type { Json } from './json-schema.js';
import { openApiDocument } from './openapi.js';
import { usePipeline } from './pipeline.js';
import { createLimiter } from './limiter.js';
import type { OtherNames, SharedParts } from './other-names.js';
import type { WideLimit } from './rate-limit.js';
import { referencePages } from './reference-page.js';
import { Server, type Bounds, type Listening } from './server.js';

export interface ListenerOptions {
  /** Identifies the listener in logs and rate limit keys: `web`, `backend`. */
  readonly name: string;
  readonly title: string;
  readonly endpoints: readonly Endpoint[];
  /** True to omit the documentation pages, for listeners that outside programs call. */
  readonly undocumented?: boolean;
  readonly limits: readonly WideLimit[];
  readonly authenticate: readonly AuthenticationConfig[];
  /** Reports whether to trust the peer's `X-Forwarded-For`, in addition to trusted proxies. */
  readonly trustsForwarded?: (request: IncomingMessage) => boolean;
  /** Names the client of a request from a trusted sender, which counts in place of the sender's address. */
  readonly clientOf?: (request: IncomingMessage) => string | undefined;
  /** Without a database, endpoints have no `tenant` and accept no `Idempotency-Key`. */
  readonly database?: Database;
  /** Writes rejected keys to the audit log. */
  readonly refusals?: Pick<Refusals, 'note'>;
  /** Encrypts the stored answers of endpoints that accept `Idempotency-Key`. */
  readonly secrets?: SecretBox;
  readonly log: Logger;
  /** Metrics of requests. */
  readonly requests?: RequestSeconds | undefined;
  readonly settings: Pick<
    HttpSettings,
    | 'hstsSubdomains'
    | 'ownNames'
    | 'production'
    | 'trustedProxies'
    | 'redisUrl'
    | 'requestsPerMinute'
  > &
    // The operator's address in the document.
    Partial<Pick<HttpSettings, 'webUrl'>>;
  /** Accepted values of `Host`, in addition to those in the settings. */
  readonly alsoNamed?: readonly string[];
  /** Makes the server of requests whose `Host` is not a name of this listener; they are refused without. */
  readonly otherNames?: ((shared: SharedParts) => OtherNames) | undefined;
  /** Networks (CIDR) whose connections are dropped without an answer, such as those of agents. */
  readonly refuseFrom?: readonly string[];
  /** For tests. */
  readonly bounds?: Partial<Bounds & BodyBudget>;
}

export interface Listener {
  readonly app: Koa;
  /** Builds the OpenAPI document of the endpoints. */
  document(): Json;
  /** Starts to serve; port 0 picks a free port, and `variable` is the setting of the port. @throws ListenError, for example if the port is in use. */
  listen(host: string, port: number, variable?: string): Promise<Listening>;
}

/** Builds the Koa application that serves the endpoints and their OpenAPI document. */
export function createListener(options: ListenerOptions): Listener {
  const { database, endpoints, limits, name, settings } = options;
  const log = options.log.child({ listener: name });
  const limiter = createLimiter({
    name,
    redisUrl: settings.redisUrl,
    perAddress: settings.requestsPerMinute,
    log,
  });
  const document = () =>
    openApiDocument({
      title: options.title,
      release: readRelease(),
      contactUrl: settings.webUrl,
      endpoints,
      limits,
    });
  const server = new Server({
    log,
    refuseFrom: options.refuseFrom ?? [],
    trustedProxies: settings.trustedProxies,
    bounds: options.bounds,
    onClosed: () => limiter.close(),
  });

  const addressOf = addressReader(settings.trustedProxies, options.trustsForwarded);
  const guard = (address: string) => limiter.guard(address)?.refusal;
  const ownNames = new Set([...settings.ownNames, ...(options.alsoNamed ?? [])]);
  const isOwn = (request: IncomingMessage) => isOwnHost(request, ownNames);
  const others = options.otherNames?.({ log, isOwn, addressOf, guard, requests: options.requests });
  const app = new Koa();
  app.on('error', (error: unknown) => {
    // A client that disconnects during a stream is not our error.
    if (clientLeft(error)) log.debug('client disconnected');
    else log.error({ error: describeError(error) }, 'sending a response failed');
  });
  usePipeline(app, {
    endpoints: options.undocumented
      ? endpoints
      : [...endpoints, ...referencePages(document, options.title)],
    limits,
    limiter,
    ownNames,
    addressOf: (request) => options.clientOf?.(request) ?? addressOf(request),
    configs: new AuthenticationConfigs(options.authenticate),
    idempotency:
      options.secrets && database && idempotency(new IdempotencyStore(database, options.secrets)),
    database,
    bodies: bodyMemory(options.bounds),
    log,
    noteRequest: options.requests?.of(name),
    production: settings.production,
    hstsSubdomains: settings.hstsSubdomains,
    server,
    onKeyRefused: (address) =>
      options.refusals?.note({ action: 'key.refused', subject: name, address }),
  });

  const handle = app.callback();
  const serve: RequestListener = (request, response) => void handle(request, response);
  return {
    app,
    document,
    listen: (host, port, variable) => server.listen(serve, { host, port, variable }, others),
  };
}

const CLIENT_LEFT = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE']);

function clientLeft(error: unknown): boolean {
  return error instanceof Error && 'code' in error && CLIENT_LEFT.has(String(error.code));
}
