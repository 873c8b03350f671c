import type { IncomingMessage, RequestListener } from 'node:http';
import Koa from 'koa';
import type { Logger } from 'pino';
import { describeError } from '../../src/describe-error.js';
import type { HttpSettings } from '../../src/http/settings.js';
import type { Database } from '../../src/database/database.js';
import { KeptAnswers } from '../../src/idempotency/kept-answers.js';
import type { Refusals } from '../../src/audit/refusals.js';
import type { SecretBox } from '../../src/secrets/secret-box.js';
import { AuthenticationConfigs, type AuthenticationConfig } from '../auth/authentication.js';
import { addressReader } from './client-address.js';
import type { Endpoint } from './endpoint.js';
import { idempotency } from './idempotency.js';
import { openApiDocument } from './openapi.js';
import { usePipeline } from './pipeline.js';
import { createLimiter } from './limiter.js';
import type { WideLimit } from './rate-limit.js';
import { referencePages } from './reference-page.js';
import { Server, type Bounds, type Listening } from './server.js';

export interface ListenerOptions {
  /** Names it in logs and in the keys of its limits: `web`, `backend`. */
  readonly name: string;
  /** Heads its OpenAPI document. */
  readonly title: string;
  readonly endpoints: readonly Endpoint[];
  /** Without the pages that document them: where strangers' programs call. */
  readonly undocumented?: boolean;
  /** Beside those that its endpoints name. */
  readonly limits: readonly WideLimit[];
  /** The ways to authenticate that its endpoints name, configured. */
  readonly authenticate: readonly AuthenticationConfig[];
  /** Whose `X-Forwarded-For` counts, beside that of trusted proxies. */
  readonly believesForwarded?: (request: IncomingMessage) => boolean;
  /** Without one its endpoints have no `tenant`, and take no `Idempotency-Key`. */
  readonly database?: Database;
  /** Tells the audit log of keys that open nothing. */
  readonly refusals?: Pick<Refusals, 'note'>;
  /** Seals the kept answers of endpoints that take `Idempotency-Key`. */
  readonly secrets?: SecretBox;
  readonly log: Logger;
  readonly settings: Pick<
    HttpSettings,
    'ownNames' | 'production' | 'trustedProxies' | 'redisUrl' | 'requestsPerMinute'
  >;
  /** What a request's `Host` may name, beside what the settings say. */
  readonly alsoNamed?: readonly string[];
  /** Networks (CIDR) whose connections are dropped unanswered, such as those of agents. */
  readonly refuseFrom?: readonly string[];
  /** For tests. */
  readonly bounds?: Partial<Bounds>;
}

export interface Listener {
  readonly app: Koa;
  /**
   * Starts to serve; port 0 takes a free one.
   *
   * @throws ListenError in one sentence, for example when the port is taken.
   */
  listen(host: string, port: number): Promise<Listening>;
}

/** Builds the Koa application that serves these endpoints, and its OpenAPI document beside them. */
export function createListener(options: ListenerOptions): Listener {
  const { database, endpoints, limits, name, settings } = options;
  const log = options.log.child({ listener: name });
  const limiter = createLimiter({
    name,
    redisUrl: settings.redisUrl,
    perAddress: settings.requestsPerMinute,
    log,
  });
  const document = () => openApiDocument({ title: options.title, endpoints, limits });
  const server = new Server({
    log,
    refuseFrom: options.refuseFrom ?? [],
    trustedProxies: settings.trustedProxies,
    bounds: options.bounds,
    onClosed: () => limiter.close(),
  });

  const app = new Koa();
  app.on('error', (error: unknown) => {
    // A client that leaves in the middle of a stream is not a fault of ours.
    if (clientLeft(error)) log.debug('the client went away');
    else log.error({ error: describeError(error) }, 'a response could not be completed');
  });
  usePipeline(app, {
    endpoints: options.undocumented
      ? endpoints
      : [...endpoints, ...referencePages(document, options.title)],
    limits,
    limiter,
    ownNames: new Set([...settings.ownNames, ...(options.alsoNamed ?? [])]),
    addressOf: addressReader(settings.trustedProxies, options.believesForwarded),
    configs: new AuthenticationConfigs(options.authenticate),
    idempotency:
      options.secrets && database && idempotency(new KeptAnswers(database, options.secrets)),
    database,
    log,
    production: settings.production,
    server,
    onKeyRefused: (address) =>
      options.refusals?.note({ action: 'key.refused', subject: name, address }),
  });

  const handle = app.callback();
  const serve: RequestListener = (request, response) => void handle(request, response);
  return { app, listen: (host, port) => server.listen(serve, host, port) };
}

const CLIENT_LEFT = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE']);

function clientLeft(error: unknown): boolean {
  return error instanceof Error && 'code' in error && CLIENT_LEFT.has(String(error.code));
}
