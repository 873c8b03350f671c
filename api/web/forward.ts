import type * as z from 'zod';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { person } from '../auth/person.js';
import { errorsOf } from '../http/derived-errors.js';
import { endpoint, type Declaration, type Endpoint } from '../http/endpoint.js';
import type { RateLimit } from '../http/rate-limit.js';
import { reply } from '../http/reply.js';
import { successOf, type BackendClient } from './backend-client.js';

/** An endpoint of the backend that is about one thing of the caller's. */
type Forwarded = Declaration & { readonly params?: z.ZodType<{ readonly id: string }> | undefined };

/**
 * Makes endpoints that hand a signed-in user's requests on to the backend's endpoints of the same
 * method and path, and their answers back.
 *
 * @param options.owned throws for what is not the caller's; the backend is not asked then.
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
