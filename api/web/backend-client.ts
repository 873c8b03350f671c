import type * as z from 'zod';
import { BadGatewayError, LimitedElsewhereError, ServiceError } from '../../src/lib/errors.js';
import { StillRunningError } from '../../src/platform/idempotency/kept-answers.js';
import { isObject, tryParseJson } from '../../src/lib/json.js';
import { retryAfterMs } from '../../src/lib/retry-after.js';
import type { Caller } from '../auth/authentication.js';
import { ANSWER_KEPT_BY } from '../auth/internal-key.js';
import type { Person } from '../auth/session.js';
import type { Declaration, None, Responses, TypedDeclaration } from '../http/endpoint.js';

/** Spec 8: the bound of a call for a deployment, and so of every other. */
const CALL_TIMEOUT_MS = 15_000;

const LIMIT_HEADERS = [
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
] as const;

/** On whose behalf, and from where, the backend is called. */
export interface OnBehalfOf {
  readonly caller: Person;
  readonly clientAddress: string;
  readonly requestId: string;
  readonly idempotencyId: string;
}

type Part<Name extends string, S extends z.ZodType> = S extends None
  ? unknown
  : { readonly [N in Name]: z.input<S> };

/** What an endpoint is sent. */
type Sent<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = Part<'params', P> &
  Part<'body', B> & { readonly query?: z.output<Q> } & Keeping;

interface AnySent extends Keeping {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

interface Keeping {
  /**
   * Our own endpoint keeps the answer, and the backend does not as well. For what does no harm when
   * the backend is asked once more under the same id, also while it is still at the first time.
   */
  readonly keepsAnswer?: boolean;
  /** Milliseconds until it is given up, where the usual ones are too few. */
  readonly takesMs?: number;
  /** Gives it up as well. */
  readonly signal?: AbortSignal;
}

/** What an endpoint answers when it does as it is asked. */
type Success<R extends Responses> = {
  [Status in keyof R & (200 | 201 | 202)]: R[Status] extends z.ZodType
    ? z.output<R[Status]>
    : never;
}[keyof R & (200 | 201 | 202)];

/** The web API's way to the backend: HTTP, with the internal key and the identity headers. */
export class BackendClient {
  readonly #url: string;
  readonly #internalApiKey: string | undefined;

  constructor(url: string, internalApiKey: string | undefined) {
    this.#url = url;
    this.#internalApiKey = internalApiKey;
  }

  /**
   * Calls an endpoint of the backend for a signed-in user.
   *
   * @throws ServiceError with the backend's own status, text and facts where it refuses,
   *   BadGatewayError when it cannot be reached or answers what it should not. Any other error is a
   *   fault of our own.
   */
  call<
    C extends Caller,
    R extends Responses,
    P extends z.ZodType,
    Q extends z.ZodType,
    H extends z.ZodType,
    B extends z.ZodType,
  >(
    on: OnBehalfOf,
    endpoint: TypedDeclaration<C, R, P, Q, H, B>,
    sent: Sent<P, Q, B>,
  ): Promise<Success<R>> {
    // What the endpoint's own schema has read.
    return this.forward(on, endpoint, sent) as Promise<Success<R>>;
  }

  /** The same, for those who do not look at what they send and get. */
  async forward(on: OnBehalfOf, endpoint: Declaration, sent: AnySent): Promise<unknown> {
    const { method } = endpoint;
    const { body, keepsAnswer, query, signal, takesMs = CALL_TIMEOUT_MS + waitMs(query) } = sent;
    const late = AbortSignal.timeout(takesMs);
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
        // A call that is repeated because its answer was not heard happens once.
        ...(method !== 'GET' && { 'idempotency-key': on.idempotencyId }),
        ...(keepsAnswer && { [ANSWER_KEPT_BY]: 'caller' }),
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
      throw new BadGatewayError('The backend gave an unexpected answer', { cause: read.error });
    }
    throw refusal(response, parsed);
  }
}

/**
 * Sends what is complete, so that nothing but the way to the backend can fail here: a request that
 * could not even be made is a fault of our own.
 *
 * @throws BadGatewayError when the backend cannot be reached, breaks off, or is too slow.
 */
async function exchange(request: Request): Promise<{ response: Response; text: string }> {
  try {
    const response = await fetch(request);
    return { response, text: await response.text() };
  } catch (error) {
    throw new BadGatewayError('The backend is unavailable', { cause: error });
  }
}

/** The one answer of JSON that says that all went well. */
export function successOf({ path, responses }: Declaration): {
  readonly status: number;
  readonly schema: z.ZodType;
} {
  for (const status of [200, 201, 202]) {
    const schema = responses[status];
    if (typeof schema === 'object' && 'safeParse' in schema) return { status, schema };
  }
  throw new TypeError(`${path} has no answer that could be read`);
}

/**
 * Reads an answer without what the schema does not know: a backend may be newer than its caller, as
 * it is while both are being upgraded.
 */
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
  return Object.entries(values ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, String(value)]);
}

/** How much longer than usual the answer may take, because it was asked to wait. */
function waitMs(query: unknown): number {
  const asked = typeof query === 'object' && query !== null && 'wait' in query ? query.wait : 0;
  return Number(asked) * 1_000;
}

/** The backend's refusal, as our own answer. That our key is refused is no fault of the caller. */
function refusal({ headers, status }: Response, body: unknown): ServiceError {
  const againMs = retryAfterMs(headers);
  // A call that we gave up on is still at work there.
  if (status === 409 && againMs !== undefined) return new StillRunningError(againMs / 1_000);
  const isOfOurKey = status === 401 || (status === 403 && !isCoded(body));
  if (isOfOurKey || !isErrorBody(body)) {
    return new BadGatewayError(`The backend answered with ${status}`);
  }
  const { error, requestId: _requestId, code: shown, ...facts } = body;
  const code = typeof shown === 'string' ? shown : undefined;
  if (status === 429) return new LimitedElsewhereError(error, limitHeaders(headers), code, facts);
  return new ServiceError(status, error, code, facts);
}

/** What the backend says of its limit, in place of what ours would say of another one. */
function limitHeaders(headers: Headers): Readonly<Record<string, string>> {
  if (!headers.has('retry-after')) return {};
  return Object.fromEntries(
    LIMIT_HEADERS.flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
}

/** A refusal that has a code is about what is asked for. */
const isCoded = (body: unknown): boolean => isObject(body) && typeof body.code === 'string';

function isErrorBody(body: unknown): body is { error: string } & Record<string, unknown> {
  return isObject(body) && typeof body.error === 'string';
}
