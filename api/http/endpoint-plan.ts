import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from 'pino';
import type { Authenticate, Caller, Given } from '../auth/authentication.js';
import { errorStatuses } from './derived-errors.js';
import type { Endpoint } from './endpoint.js';
import { presenter, type Presenter } from './presenter.js';
import type { RateLimit } from './rate-limit.js';
import { refuseUnstorable } from './read-body.js';
import { validator } from './validation.js';

/** An endpoint with everything prepared that does not depend on the request. */
export interface Plan {
  readonly endpoint: Endpoint;
  readonly presenter: Presenter;
  readonly authenticate: Authenticate<Caller>;
  readParams(params: Readonly<Record<string, string>>): unknown;
  /** @param search what follows the `?`. */
  readQuery(search: string): unknown;
  readHeaders(headers: IncomingHttpHeaders): unknown;
  /** @param body undefined when the request had none. */
  readBody(body: unknown): unknown;
}

const nothing = () => undefined;

export function planOf(
  endpoint: Endpoint,
  options: {
    readonly given: Given;
    readonly limits: readonly RateLimit[];
    readonly production: boolean;
    readonly log: Logger;
  },
): Plan {
  const { params, query, headers, body } = endpoint;
  const checkParams = params && validator(params, 'path');
  const checkQuery = query && validator(query, 'query');
  const checkHeaders = headers && validator(headers, 'headers');
  const checkBody = body && validator(body, 'body');
  // So that a missing body is told as the field that is missing, where one is.
  const noBody = body?.safeParse(undefined).success ? undefined : {};

  return {
    endpoint,
    authenticate: endpoint.auth.prepare(options.given),
    presenter: presenter(endpoint, errorStatuses(endpoint, options.limits), options),
    readParams: checkParams ? (params) => checkParams(storable(params)) : nothing,
    readQuery: checkQuery ? (search) => checkQuery(parseQuery(search)) : nothing,
    readHeaders: checkHeaders ?? nothing,
    readBody: checkBody ? (read) => checkBody(read === undefined ? noBody : read) : nothing,
  };
}

function storable(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  refuseUnstorable(params, 'path');
  return params;
}

/** A name that comes more than once becomes a list, which a schema for one value refuses. */
function parseQuery(search: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  if (search === '') return query;
  const values = new URLSearchParams(search);
  for (const name of new Set(values.keys())) {
    const all = values.getAll(name);
    // Not assigned, because a query may well be named __proto__.
    Object.defineProperty(query, name, {
      value: all.length === 1 ? all[0] : all,
      enumerable: true,
    });
  }
  refuseUnstorable(query, 'query');
  return query;
}
