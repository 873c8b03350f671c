import type * as z from 'zod';
import type { Statements, TenantDatabase } from '../../src/platform/database/database.js';
import type { Authentication, Caller } from '../auth/authentication.js';
import type { ErrorAnswer } from './error-answer.js';
import type { Limits, RateLimit } from './rate-limit.js';
import type { ConcurrencyLimit } from './under-way.js';
import type { FileReply, HtmlReply, RedirectReply, Reply, StreamReply } from './reply.js';
import type { BodyFormat, BodyOf } from './body-format.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What one status answers with: JSON of a schema, or what its word says. */
export type ResponseBody =
  | z.ZodType
  | 'stream'
  | 'file'
  | 'html'
  | 'redirect'
  | 'empty'
  | readonly [z.ZodType, 'stream'];

export type Responses = Readonly<Record<number, ResponseBody>>;

/** A body is only read, so a handler may hand over what it must not change itself. */
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

/** Everything a handler may return, given the statuses that its endpoint declares. */
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
  /** The database as this caller may see it; an anonymous caller sees no tenant's rows. */
  readonly tenant: TenantDatabase;
  readonly requestId: string;
  /** The client's address, proxies taken into account. */
  readonly clientAddress: string;
  /** Aborts when the client goes away before it was answered. */
  readonly signal: AbortSignal;
  /**
   * A UUID that stays the same when the caller repeats the request with its `Idempotency-Key`, and
   * is random without one: made into ids, it makes a repetition meet what the first try left.
   */
  readonly idempotencyId: string;
  /**
   * Keeps the answer for the caller's `Idempotency-Key` in a transaction of the platform's, so that it
   * is there if and only if what it tells of is. Undefined without a key. Resolves to false where a
   * repetition has taken the request over: the transaction is to be given up.
   */
  readonly keepAnswer: KeepReply | undefined;
}

type KeepReply = (db: Statements, reply: ReplyTo<Responses>) => Promise<boolean>;

/** How an endpoint words its errors. */
export interface ErrorForm {
  readonly schema: z.ZodType;
  /** @returns the body, given what it is elsewhere. */
  of(error: ErrorAnswer): unknown;
}

/** What is declared of an endpoint. */
export interface Declaration {
  readonly method: Method;
  /** Literal segments and `:name` parameters, as in `/api/agents/:id`. */
  readonly path: string;
  readonly summary: string;
  /** The area it belongs to: groups endpoints in the reference page. */
  readonly tag: string;
  readonly auth: Authentication;
  /** Takes `Idempotency-Key`. */
  readonly idempotent?: boolean | undefined;
  readonly params?: z.ZodType | undefined;
  readonly query?: z.ZodType | undefined;
  /** Lower-case names; not strict, because every request carries other headers too. */
  readonly headers?: z.ZodType | undefined;
  /** A schema takes JSON. */
  readonly body?: z.ZodType | BodyFormat | undefined;
  readonly responses: Responses;
  /** Statuses that the handler may fail with, beside those that follow from the declaration. */
  readonly errors?: readonly number[] | undefined;
  /** How often a client may call it, and what shares the limit with it. */
  readonly limit?: Limits | undefined;
  /** The same of whoever was found to call, from wherever; the operator's own programs are not counted. */
  readonly limitOfCaller?: RateLimit | undefined;
  /** How many of a user's requests may be under way at a time; the operator's own are not counted. */
  readonly atOnce?: ConcurrencyLimit | undefined;
  /** Where a foreign contract has another form than `{error: <text>}`. */
  readonly errorForm?: ErrorForm | undefined;
}

/** A declared endpoint as the listener, the OpenAPI document and walking tests see it. */
export interface Endpoint extends Declaration {
  handler(request: EndpointRequest): ReplyTo<Responses> | Promise<ReplyTo<Responses>>;
}

/** The schema of a part that requests do not have. */
export type None = z.ZodUndefined;

export type BodySchema = z.ZodType | BodyFormat;

/** A declaration with the types that its schemas give to a handler. */
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

/** Answers a request that passed all that is declared. */
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

/**
 * Declares one endpoint. Validation, authentication, limits, the response check and the OpenAPI
 * document all follow from this declaration.
 */
export function endpoint<
  C extends Caller,
  const R extends Responses,
  P extends z.ZodType = None,
  Q extends z.ZodType = None,
  H extends z.ZodType = None,
  B extends BodySchema = None,
>(
  declared: TypedDeclaration<C, R, P, Q, H, B> & {
    // A method, whose request may be narrower than that of any endpoint: the listener only ever
    // calls it with what the declaration's own schemas and way to authenticate have produced.
    handler(
      ...request: Parameters<Handler<C, R, P, Q, H, B>>
    ): ReturnType<Handler<C, R, P, Q, H, B>>;
  },
): Endpoint {
  return declared;
}
