import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from 'pino';
import type { Authenticate, Caller, AuthenticationConfigs } from '../auth/authentication.js';
import { errorStatuses } from './derived-errors.js';
import type { Endpoint } from './endpoint.js';
import { formatOf, type BodyFormat } from './body-format.js';
import { byName, type NamedValues } from './named-values.js';
import { presenter, type Presenter } from './presenter.js';
import { limitsOf, type RateLimit, type WideLimit } from './rate-limit.js';
import { refuseUnstorable } from './storable.js';
import { validator } from './validation.js';

/** An endpoint with all state that does not depend on the request. */
export interface Plan {
  readonly endpoint: Endpoint;
  readonly limits: readonly RateLimit[];
  /** Limits counted by authenticated caller. */
  readonly limitsOfCaller: readonly RateLimit[];
  readonly presenter: Presenter;
  readonly authenticate: Authenticate<Caller>;
  readParams(params: Readonly<Record<string, string>>): unknown;
  /** @param search the query string after the `?`. */
  readQuery(search: string): unknown;
  readHeaders(headers: IncomingHttpHeaders): unknown;
  /** Undefined if the endpoint takes no body. */
  readonly bodyFormat: BodyFormat | undefined;
}

const nothing = () => undefined;

export function planOf(
  endpoint: Endpoint,
  options: {
    readonly configs: AuthenticationConfigs;
    readonly limits: readonly WideLimit[];
    readonly production: boolean;
    readonly log: Logger;
  },
): Plan {
  const { params, query, headers, body } = endpoint;
  const limits = limitsOf(endpoint, options.limits);
  const checkParams = params && validator(params, 'path');
  const checkQuery = query && validator(query, 'query');
  const checkHeaders = headers && validator(headers, 'headers');

  return {
    endpoint,
    limits,
    limitsOfCaller: [endpoint.limitOfCaller ?? []].flat(),
    authenticate: endpoint.auth.prepare(options.configs),
    presenter: presenter(endpoint, errorStatuses(endpoint), options),
    readParams: checkParams ? (params) => checkParams(storable(params)) : nothing,
    readQuery: checkQuery ? (search) => checkQuery(parseQuery(search)) : nothing,
    readHeaders: checkHeaders ?? nothing,
    bodyFormat: body && formatOf(body),
  };
}

function storable(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  refuseUnstorable(params, 'path');
  return params;
}

function parseQuery(search: string): NamedValues {
  if (search === '') return {};
  const query = byName(new URLSearchParams(search));
  refuseUnstorable(query, 'query');
  return query;
}
