import * as z from 'zod';
import type { CallerOf } from '../auth/authentication.js';
import type { RequiredScope } from '../auth/key-scope.js';
import { person } from '../auth/person.js';
import { errorsOf } from '../http/derived-errors.js';
import {
  endpoint,
  type Declaration,
  type Endpoint,
  type EndpointRequest,
} from '../http/endpoint.js';
import type { RateLimit } from '../http/rate-limit.js';
import { reply } from '../http/reply.js';
import { successOf, type BackendClient } from './backend-client.js';

/** A declaration whose requests are forwarded as JSON. */
type Forwarded<P> = Declaration & {
  readonly params?: z.ZodType<P> | undefined;
  readonly body?: z.ZodType | undefined;
};

export interface ForwardOptions<P> {
  readonly keyScope: RequiredScope;
  readonly limit: RateLimit;
  readonly limitOfCaller?: RateLimit;
  /** Throws for a request that the backend must not receive. */
  readonly check?: (request: EndpointRequest<CallerOf<typeof person>, P>) => unknown;
  /** As of `BackendClient.forward`. */
  readonly storesResponse?: boolean;
  readonly timeoutMs?: number;
}

/** Derives endpoints that forward a signed-in user's requests to the backend's of the same method and path. */
export function forwarder<P>(
  backend: BackendClient,
  { check, keyScope, storesResponse, limit, limitOfCaller, timeoutMs }: ForwardOptions<P>,
): (declared: Forwarded<P>) => Endpoint {
  return (declared) => {
    const { method, path, operationId, summary, tag, idempotent, atOnce } = declared;
    const { params, query, body, responses } = declared;
    return endpoint({
      method,
      path,
      operationId,
      summary,
      tag,
      idempotent,
      atOnce,
      params,
      query,
      body,
      responses,
      auth: person,
      keyScope,
      limit,
      limitOfCaller,
      errors: [...errorsOf(declared), 404],
      async handler(request) {
        await check?.(request);
        const answer = await backend.forward(request, declared, {
          params: request.params,
          query: request.query,
          // The handler's values, such as amounts, become JSON again.
          body: body && z.encode(body, request.body),
          // A caller that leaves does not cancel a call whose answer is kept.
          ...(storesResponse ? { storesResponse } : { signal: request.signal }),
          ...(timeoutMs !== undefined && { timeoutMs }),
        });
        return reply(successOf(declared).status, answer);
      },
    });
  };
}
