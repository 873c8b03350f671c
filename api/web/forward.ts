import type * as z from 'zod';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { person } from '../auth/person.js';
import { errorsOf } from '../http/derived-errors.js';
import { endpoint, type Declaration, type Endpoint } from '../http/endpoint.js';
import type { RateLimit } from '../http/rate-limit.js';
import { reply } from '../http/reply.js';
import { successOf, type BackendClient } from './backend-client.js';

/** A backend endpoint for a single resource of the caller's. */
type Forwarded = Declaration & { readonly params?: z.ZodType<{ readonly id: string }> | undefined };

/**
 * Creates endpoints that forward a signed-in user's requests to the backend endpoints of the same method
 * and path.
 *
 * @param options.owned throws unless the resource belongs to the caller; the backend is not called then.
 */
export function forwarder(
  backend: BackendClient,
  options: {
    readonly limit: RateLimit;
    owned(request: {
      readonly params: { readonly id: string };
      readonly tenant: TenantDatabase;
    }): Promise<unknown>;
  },
): (declared: Forwarded) => Endpoint {
  return (declared) => {
    const { method, path, summary, tag, idempotent, atOnce } = declared;
    const { params, query, body, responses } = declared;
    return endpoint({
      ...{ method, path, summary, tag, idempotent, atOnce, params, query, body, responses },
      auth: person,
      limit: options.limit,
      errors: [...errorsOf(declared), 404],
      async handler(request) {
        await options.owned(request);
        const answer = await backend.forward(request, declared, request);
        return reply(successOf(declared).status, answer);
      },
    });
  };
}
