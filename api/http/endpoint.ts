import type * as z from 'zod';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import type { Statements, TenantDatabase } from '../../src/platform/database/database.js';
import type { Authentication, Caller } from '../auth/authentication.js';
import type { RequiredScope } from '../auth/key-scope.js';
import type { Answer } from './answer.js';
import type { AnswerHeader } from './answer-headers.js';
import type { ErrorAnswer } from './error-answer.js';
import type { Limits, RateLimit } from './rate-limit.js';
import type { ConcurrencyLimit } from './in-flight.js';
import type { NamedValues } from './named-values.js';
import type { FileReply, HtmlReply, RedirectReply, Reply, StreamReply } from './reply.js';
import type { BodyFormat, BodyOf } from './body-format.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The body of one status: JSON of a schema, or the kind named by the string. */
export type ResponseBody =
  | z.ZodType
  | 'stream'
  | 'file'
  | 'html'
  | 'redirect'
  | 'empty'
  | readonly [z.ZodType, 'stream'];

export type Responses = Readonly<Record<number, ResponseBody>>;

/** A body type with everything read-only, so that handlers may return shared data. */
type Immutable<T> = T extends readonly (infer Element)[]
  ? readonly Immutable<Element>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;

interface ReplyByWord<Status extends number> {
  stream: StreamReply<Status>;
  file: FileReply<Status>;
  html: HtmlReply<Status>;
  redirect: RedirectReply<Status>;
  empty: Reply<Status, undefined>;
}

type ReplyWith<Status extends number, Body> = Body extends z.ZodType
  ? Reply<Status, Immutable<z.input<Body>>>
  : Body extends keyof ReplyByWord<Status>
    ? ReplyByWord<Status>[Body]
    : Body extends readonly [infer Json, 'stream']
      ? ReplyWith<Status, Json> | StreamReply<Status>
      : never;

/** The replies that a handler may return, by the statuses that its endpoint declares. */
export type ReplyTo<R extends Responses> = {
  [Status in keyof R & number]: ReplyWith<Status, R[Status]>;
}[keyof R & number];

/** A request that passed limits, authentication and validation. */
export interface EndpointRequest<
  C extends Caller = Caller,
  Params = unknown,
  Query = unknown,
  Headers = unknown,
  Body = unknown,
> {
  readonly params: Params;
  readonly query: Query;
  readonly headers: Headers;
  readonly body: Body;
  readonly caller: C;
  /** The database as the caller sees it; an anonymous caller sees no tenant's rows. */
  readonly tenant: TenantDatabase;
  readonly requestId: string;
  /** The client's address, with trusted proxies resolved. */
  readonly clientAddress: string;
  /** The request id and the client's address, for the audit log. */
  readonly origin: RequestOrigin;
  /** Aborts if the client disconnects before the answer. */
  readonly signal: AbortSignal;
  /** A UUID, equal for all requests with an `Idempotency-Key`: a repetition finds the first attempt's rows. */
  readonly idempotencyId: string;
  /**
   * Stores the answer for the `Idempotency-Key` within a platform transaction, atomic with its changes;
   * undefined without a key. Resolves to false if a repetition has claimed the request: roll back then.
   */
  readonly keepAnswer: KeepReply | undefined;
  /**
   * Records that tables contain the answer to the `Idempotency-Key`, so that the answer is not stored a
   * second time: a repetition reads it from them. Undefined without a key.
   */
  readonly markAnswered: (() => Promise<void>) | undefined;
  /** True for a repetition after `markAnswered`: find the answer, and do nothing else. */
  readonly isAnswered: boolean;
  /** Calls one of the endpoints that the declaration names as `calls`. */
  readonly call: CallEndpoint;
}

/** The parts of a call within a request, unchecked. */
export interface Given {
  readonly params: NamedValues;
  readonly query: NamedValues;
  readonly body: unknown;
}

/**
 * Calls another endpoint for the caller of a request: limits, key scope, validation and the form of the answer
 * are those of the called endpoint. Never throws: an error is an answer.
 */
export type CallEndpoint = (endpoint: Endpoint, given: Given) => Promise<Answer>;

type KeepReply = (db: Statements, reply: ReplyTo<Responses>) => Promise<boolean>;

export interface ErrorForm {
  /** Name of the format in the OpenAPI document, such as `OpenAiError`. */
  readonly name: string;
  readonly schema: z.ZodType;
  /** @returns the body in this format, given the default one. */
  of(error: ErrorAnswer): unknown;
}

export interface Declaration {
  readonly method: Method;
  /** Literal segments and `:name` parameters, for example `/api/agents/:id`. */
  readonly path: string;
  /** Name of the operation in generated clients, unique among the endpoints of a listener. */
  readonly operationId?: string | undefined;
  readonly summary: string;
  readonly tag: string;
  readonly auth: Authentication;
  /** The scope that an API key needs; required where `auth` accepts API keys. */
  readonly keyScope?: RequiredScope | undefined;
  readonly idempotent?: boolean | undefined;
  readonly params?: z.ZodType | undefined;
  readonly query?: z.ZodType | undefined;
  /** Lower-case names; not strict, because every request carries other headers too. */
  readonly headers?: z.ZodType | undefined;
  /** The format of the body; a plain schema means JSON. */
  readonly body?: z.ZodType | BodyFormat | undefined;
  readonly responses: Responses;
  /** Headers of the answers, in addition to those implied by the declaration. */
  readonly answerHeaders?: readonly AnswerHeader[] | undefined;
  /** Error statuses of the handler, in addition to those implied by the declaration. */
  readonly errors?: readonly number[] | undefined;
  /** Rate limits by client address; limits with the same name are shared. */
  readonly limit?: Limits | undefined;
  /** Rate limit by authenticated caller, from any address; the operator's own programs are not counted. */
  readonly limitOfCaller?: RateLimit | undefined;
  /** Rate limit of an authenticated caller's requests that end with 400 or 401, such as free runs and guesses. */
  readonly limitOfRefusals?: RateLimit | undefined;
  /** Limit of a user's requests in flight; the operator's own are not counted. */
  readonly atOnce?: ConcurrencyLimit | undefined;
  /** The error format of a foreign contract, if not `{error: <text>}`. */
  readonly errorForm?: ErrorForm | undefined;
  /** Endpoints that the handler calls for its caller, such as the tools of a gateway. */
  readonly calls?: readonly Endpoint[] | undefined;
}

/** A declared endpoint for the listener, the OpenAPI document and tests over all endpoints. */
export interface Endpoint extends Declaration {
  handler(request: EndpointRequest): ReplyTo<Responses> | Promise<ReplyTo<Responses>>;
}

/** The schema of an absent part of a request. */
export type None = z.ZodUndefined;

export type BodySchema = z.ZodType | BodyFormat;

/** A declaration with the types that its schemas imply for the handler. */
export interface TypedDeclaration<
  C extends Caller,
  R extends Responses,
  P extends z.ZodType,
  Q extends z.ZodType,
  H extends z.ZodType,
  B extends BodySchema,
> extends Declaration {
  readonly auth: Authentication<C>;
  readonly params?: P | undefined;
  readonly query?: Q | undefined;
  readonly headers?: H | undefined;
  readonly body?: B | undefined;
  readonly responses: R;
}

export type Handler<
  C extends Caller,
  R extends Responses,
  P extends z.ZodType,
  Q extends z.ZodType,
  H extends z.ZodType,
  B extends BodySchema,
> = (
  request: EndpointRequest<C, z.output<P>, z.output<Q>, z.output<H>, BodyOf<B>>,
) => ReplyTo<R> | Promise<ReplyTo<R>>;

/** Declares an endpoint: everything else, the OpenAPI document included, derives from the declaration. */
export function endpoint<
  C extends Caller,
  const R extends Responses,
  P extends z.ZodType = None,
  Q extends z.ZodType = None,
  H extends z.ZodType = None,
  B extends BodySchema = None,
>(
  declared: TypedDeclaration<C, R, P, Q, H, B> & {
    // Method syntax, so that the handler's request may be narrower than `Asking`.
    handler(
      ...request: Parameters<Handler<C, R, P, Q, H, B>>
    ): ReturnType<Handler<C, R, P, Q, H, B>>;
  },
): Endpoint {
  return declared;
}
