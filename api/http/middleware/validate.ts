import type { Database } from '../../../src/platform/database/database.js';
import type { BodyFormat } from '../body-format.js';
import type { Endpoint } from '../endpoint.js';
import { HandlerRequest } from '../endpoint-request.js';
import { byName, type NamedValues } from '../named-values.js';
import { refuseUnstorable } from '../storable.js';
import { validator } from '../validation.js';
import type { AdmittedState, Middleware } from './context.js';

/** Builds the handler's request from the validated parts and the caller's view of the database. */
export function validate(
  endpoint: Endpoint,
  format: BodyFormat | undefined,
  database: Database | undefined,
): Middleware<AdmittedState> {
  const { params, query, headers } = endpoint;
  const checkParams = params && validator(params, 'path');
  const checkQuery = query && validator(query, 'query');
  const checkHeaders = headers && validator(headers, 'headers');

  return async (ctx, next) => {
    const { req, res, state } = ctx;
    const { clientAddress, identity, requestId } = state;
    const type = req.headers['content-type'] ?? '';
    state.request = new HandlerRequest({
      endpoint,
      incoming: req,
      response: res,
      database,
      identity,
      requestId,
      clientAddress,
      params: checkParams?.(storable(ctx.params, 'path')),
      query: checkQuery && storable(checkQuery(parseQuery(ctx.querystring)), 'query'),
      headers: checkHeaders?.(req.headers),
      body: format && (await format.read(state.bytes, type)),
    });
    // Handlers get the parsed body, so its bytes need no memory any longer.
    if (format) state.bytes = undefined;
    await next();
  };
}

function storable<T>(input: T, part: string): T {
  refuseUnstorable(input, part);
  return input;
}

function parseQuery(search: string): NamedValues {
  return search === '' ? {} : byName(new URLSearchParams(search));
}
