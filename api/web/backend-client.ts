import type * as z from 'zod';
import { isErrorCode } from '../../src/lib/error-codes.js';
import {
  BadGatewayError,
  ServiceError,
  TooManyRequestsError,
  type RefusingLimit,
} from '../../src/lib/errors.js';
import { StillRunningError } from '../../src/platform/idempotency/idempotency-store.js';
import { isObject, tryParseJson } from '../../src/lib/json.js';
import { retryAfterMs } from '../../src/lib/retry-after.js';
import type { Caller } from '../auth/authentication.js';
import { RESPONSE_STORED_BY_HEADER } from '../auth/internal-key.js';
import type { Person } from '../auth/session.js';
import { cursorOf } from '../http/pagination.js';
import type { Declaration, None, Responses, TypedDeclaration } from '../http/endpoint.js';

/** Timeout of every backend call: the limit of spec 8 for deployments. */
const CALL_TIMEOUT_MS = 15_000;

export interface CallContext {
  readonly caller: Person;
  readonly clientAddress: string;
  readonly requestId: string;
  readonly idempotencyId: string;
}

type Part<Name extends string, S extends z.ZodType> = S extends None
  ? unknown
  : { readonly [N in Name]: z.input<S> };

type Sent<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = Part<'params', P> &
  Part<'body', B> & { readonly query?: z.output<Q> } & Keeping;

interface AnySent extends Keeping {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

interface Keeping {
  /** True if our endpoint stores the answer instead of the backend, which may run the call twice. */
  readonly storesResponse?: boolean;
  /** Timeout in milliseconds, if the usual one is too short. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

type Success<R extends Responses> = {
  [Status in keyof R & (200 | 201 | 202)]: R[Status] extends z.ZodType
    ? z.output<R[Status]>
    : never;
}[keyof R & (200 | 201 | 202)];

/** The web API's client of the backend: HTTP with the internal key and identity headers. */
export class BackendClient {
  readonly #url: string;
  readonly #internalApiKey: string | undefined;

  constructor(url: string, internalApiKey: string | undefined) {
    this.#url = url;
    this.#internalApiKey = internalApiKey;
  }

  /**
   * Calls a backend endpoint for a signed-in user.
   * @throws ServiceError with the backend's status, text and details if it rejects the call; BadGatewayError
   * if it is unreachable or its answer is invalid. Any other error is our own defect.
   */
  call<
    C extends Caller,
    R extends Responses,
    P extends z.ZodType,
    Q extends z.ZodType,
    H extends z.ZodType,
    B extends z.ZodType,
  >(
    on: CallContext,
    endpoint: TypedDeclaration<C, R, P, Q, H, B>,
    sent: Sent<P, Q, B>,
  ): Promise<Success<R>> {
    // Safe cast: the endpoint's own schema has parsed the answer.
    return this.forward(on, endpoint, sent) as Promise<Success<R>>;
  }

  /** Forwards a call untyped, for callers that do not read its contents. */
  async forward(on: CallContext, endpoint: Declaration, sent: AnySent): Promise<unknown> {
    const { method } = endpoint;
    const {
      body,
      storesResponse,
      query,
      signal,
      timeoutMs = CALL_TIMEOUT_MS + waitMs(query),
    } = sent;
    const late = AbortSignal.timeout(timeoutMs);
    const { user } = on.caller;
    const request = new Request(`${this.#url}${addressOf(endpoint, sent)}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#internalApiKey ?? ''}`,
        'x-user-id': user.id,
        'x-user-email': user.email,
        'x-user-role': user.isAdmin ? 'admin' : 'user',
        'x-forwarded-for': on.clientAddress,
        'x-request-id': on.requestId,
        // Makes the call idempotent: a retry after a lost answer runs only once.
        ...(method !== 'GET' && { 'idempotency-key': on.idempotencyId }),
        ...(storesResponse && { [RESPONSE_STORED_BY_HEADER]: 'caller' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
    const { response, text } = await exchange(request);
    const parsed = tryParseJson(text);
    if (response.ok) {
      const read = readKnown(successOf(endpoint).schema, parsed);
      if (read.success) return read.data;
      throw new BadGatewayError('The backend sent an invalid answer: retry later', {
        cause: read.error,
      });
    }
    throw refusal(response, parsed);
  }
}

/**
 * Sends a complete request, so that only the connection to the backend can fail here: failing to build a
 * request is our own defect.
 * @throws BadGatewayError if the backend is unreachable, disconnects, or is too slow.
 */
async function exchange(request: Request): Promise<{ response: Response; text: string }> {
  try {
    const response = await fetch(request);
    return { response, text: await response.text() };
  } catch (error) {
    throw new BadGatewayError('The backend is unavailable: retry later', { cause: error });
  }
}

/** Returns the endpoint's only successful JSON answer. */
export function successOf({ path, responses }: Declaration): {
  readonly status: number;
  readonly schema: z.ZodType;
} {
  for (const status of [200, 201, 202]) {
    const schema = responses[status];
    if (typeof schema === 'object' && 'safeParse' in schema) return { status, schema };
  }
  throw new TypeError(`${path} declares no readable answer`);
}

/** Parses an answer and drops unknown fields: during an upgrade, the backend may be newer than the web API. */
function readKnown(schema: z.ZodType, answer: unknown) {
  const read = schema.safeParse(answer);
  const unknown = read.error?.issues.filter((issue) => issue.code === 'unrecognized_keys') ?? [];
  if (unknown.length === 0) return read;
  for (const { path, keys } of unknown) {
    const holder = path.reduce(memberOf, answer);
    if (isObject(holder)) for (const key of keys) Reflect.deleteProperty(holder, key);
  }
  return schema.safeParse(answer);
}

function memberOf(value: unknown, name: PropertyKey): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function addressOf({ path }: Declaration, { params, query }: AnySent): string {
  const values = new URLSearchParams(textsOf(params));
  const filled = path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(values.get(name) ?? ''),
  );
  const search = new URLSearchParams(textsOf(query)).toString();
  return search === '' ? filled : `${filled}?${search}`;
}

function textsOf(values: unknown): [string, string][] {
  return (
    Object.entries(values ?? {})
      .filter(([, value]) => value !== undefined)
      // The position that a cursor was read to becomes a cursor again.
      .map(([name, value]) => [name, Array.isArray(value) ? cursorOf(value) : String(value)])
  );
}

/** Returns the additional milliseconds allowed for an answer, from the query's `wait`. */
function waitMs(query: unknown): number {
  const seconds = typeof query === 'object' && query !== null && 'wait' in query ? query.wait : 0;
  return Number(seconds) * 1_000;
}

/** Converts the backend's rejection to our answer. Rejection of our own key is no fault of the caller's. */
function refusal({ headers, status }: Response, body: unknown): ServiceError {
  const againMs = retryAfterMs(headers);
  // The backend is still running a call that timed out here.
  if (status === 409 && againMs !== undefined) return new StillRunningError(againMs / 1_000);
  const isOfOurKey = status === 401 || (status === 403 && !isCoded(body));
  if (isOfOurKey || !isErrorBody(body)) {
    return new BadGatewayError(`The backend answered with status ${status}`);
  }
  const { error, requestId: _requestId, code: shown, ...facts } = body;
  const code = isErrorCode(shown) ? shown : undefined;
  if (status === 429) return new TooManyRequestsError(error, limitOf(headers), code, facts);
  return new ServiceError(status, error, code, facts);
}

/** Returns the backend's limit, which replaces our own limits. */
const limitOf = (headers: Headers): RefusingLimit => ({
  max: Number(headers.get('ratelimit-limit')) || 0,
  resetS: Number(headers.get('ratelimit-reset')) || 0,
});

/** An error with a code is about the request, not about our key. */
const isCoded = (body: unknown): boolean => isObject(body) && typeof body.code === 'string';

function isErrorBody(body: unknown): body is { error: string } & Record<string, unknown> {
  return isObject(body) && typeof body.error === 'string';
}
