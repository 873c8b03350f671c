import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import type { Database, TenantDatabase } from '../../src/platform/database/database.js';
import { deterministicUuid } from '../../src/lib/uuid-of.js';
import type { Caller, Identity, TenantOfCaller } from '../auth/authentication.js';
import type { Endpoint, EndpointRequest } from './endpoint.js';
import { whenClosed } from './when-closed.js';

interface RequestParts extends Pick<
  EndpointRequest,
  'params' | 'query' | 'headers' | 'body' | 'requestId' | 'clientAddress'
> {
  readonly endpoint: Endpoint;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly database: Database | undefined;
  readonly identity: Identity;
}

/** The request as handlers see it; rarely used properties are computed lazily. */
export class HandlerRequest implements EndpointRequest {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
  readonly caller: Caller;
  readonly requestId: string;
  readonly clientAddress: string;
  keepAnswer: EndpointRequest['keepAnswer'];
  markAnswered: EndpointRequest['markAnswered'];
  isAnswered = false;
  call: EndpointRequest['call'] = () => {
    throw new TypeError('the endpoint declares no `calls`');
  };
  readonly #parts: RequestParts;
  #tenant: TenantDatabase | undefined;
  #signal: AbortSignal | undefined;
  #idempotencyId: string | undefined;

  constructor(parts: RequestParts) {
    this.#parts = parts;
    this.params = parts.params;
    this.query = parts.query;
    this.headers = parts.headers;
    this.body = parts.body;
    this.caller = parts.identity.caller;
    this.requestId = parts.requestId;
    this.clientAddress = parts.clientAddress;
  }

  get tenant(): TenantDatabase {
    return (this.#tenant ??= tenantOf(this.#parts.identity.tenant, this.#parts.database));
  }

  get origin(): RequestOrigin {
    return { address: this.clientAddress, requestId: this.requestId };
  }

  get signal(): AbortSignal {
    return (this.#signal ??= goneSignal(this.#parts.response));
  }

  get idempotencyKey(): string | string[] | undefined {
    return this.#parts.incoming.headers['idempotency-key'];
  }

  get idempotencyId(): string {
    return (this.#idempotencyId ??= this.#makeIdempotencyId());
  }

  #makeIdempotencyId(): string {
    const key = this.idempotencyKey;
    if (typeof key !== 'string') return randomUUID();
    const { endpoint, identity } = this.#parts;
    return idempotencyIdOf(identity.scope, routeOf(endpoint), key);
  }
}

/** The route's name in stored answers. */
export const routeOf = ({ method, path }: Endpoint): string => `${method} ${path}`;

function tenantOf(tenant: TenantOfCaller, database: Database | undefined): TenantDatabase {
  if (database === undefined) throw new TypeError('this listener has no database');
  if (tenant === 'platform') return database.asPlatform();
  // No user has an empty id, so this tenant sees no rows.
  return database.asUser(tenant === 'none' ? '' : tenant.userId);
}

function goneSignal(response: ServerResponse): AbortSignal {
  if (response.destroyed) return AbortSignal.abort();
  const controller = new AbortController();
  whenClosed(response, () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

/** Deterministic id of a request with this `Idempotency-Key`, the same for every repetition. */
export const idempotencyIdOf = (scope: string, route: string, key: string): string =>
  deterministicUuid([scope, route, key]);
