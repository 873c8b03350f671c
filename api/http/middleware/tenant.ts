import type { Database } from '../../../src/platform/database/database.js';
import type { Endpoint } from '../endpoint.js';
import { HandlerRequest } from '../endpoint-request.js';
import type { AdmittedState, Middleware } from './context.js';

/** Makes the handler's request, which opens the database as its caller may see it. */
export function withTenant(
  endpoint: Endpoint,
  database: Database | undefined,
): Middleware<AdmittedState> {
  return (ctx, next) => {
    const { clientAddress, identity, input, requestId } = ctx.state;
    const { params, query, headers, body } = input;
    ctx.state.request = new HandlerRequest({
      endpoint,
      incoming: ctx.req,
      response: ctx.res,
      database,
      params,
      query,
      headers,
      body,
      identity,
      requestId,
      clientAddress,
    });
    return next();
  };
}
