import type { z } from 'zod';
import type { TenantDatabase } from '../../src/database/database.js';
import type { Authentication, Caller } from '../auth/authentication.js';
import type { ErrorAnswer } from './error-answer.js';
import type { FileReply, HtmlReply, RedirectReply, Reply, StreamReply } from './reply.js';
import type { BodyFormat, BodyOf } from './body-format.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What one status answers with: JSON of a schema, or what its word says. */
export type ResponseBody =
  z.ZodType | 'stream' | 'file' | 'html' | 'redirect' | 'empty' | readonly [z.ZodType, 'stream'];

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
}

/** How an endpoint words its errors. */
export interface ErrorForm {
  readonly schema: z.ZodType;
  /** @returns the body, given what it is elsewhere. */
  of(error: ErrorAnswer): unknown;
}

interface Declaration {
  readonly method: Method;
  /** Literal segments and `:name` parameters, as in `/api/agents/:id`. */
  readonly path: string;
  readonly summary: string;
  /** The area it belongs to: groups endpoints in the reference page. */
  readonly tag: string;
  readonly auth: Authentication;
  /** Takes `Idempotency-Key`. `sealed`: what it is asked or answers holds a secret, and is kept encrypted. */
  readonly idempotent?: boolean | 'sealed';
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  /** Lower-case names; not strict, because every request carries other headers too. */
  readonly headers?: z.ZodType;
  /** A schema takes JSON. */
  readonly body?: z.ZodType | BodyFormat;
  readonly responses: Responses;
  /** Statuses that the handler may fail with, beside those that follow from the declaration. */
  readonly errors?: readonly number[];
  /** Where a foreign contract has another form than `{error: <text>}`. */
  readonly errorForm?: ErrorForm;
}

/** A declared endpoint as the listener, the OpenAPI document and walking tests see it. */
export interface Endpoint extends Declaration {
  handler(request: EndpointRequest): ReplyTo<Responses> | Promise<ReplyTo<Responses>>;
}

type None = z.ZodUndefined;

/** An endpoint's declaration with the types that its schemas give to its handler. */
export interface TypedEndpoint<
  C extends Caller,
  R extends Responses,
  P extends z.ZodType,
  Q extends z.ZodType,
  H extends z.ZodType,
  B extends z.ZodType | BodyFormat,
> extends Declaration {
  readonly auth: Authentication<C>;
  readonly params?: P;
  readonly query?: Q;
  readonly headers?: H;
  readonly body?: B;
  readonly responses: R;
  handler(
    request: EndpointRequest<C, z.output<P>, z.output<Q>, z.output<H>, BodyOf<B>>,
  ): ReplyTo<R> | Promise<ReplyTo<R>>;
}

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
  B extends z.ZodType | BodyFormat = None,
>(declaration: TypedEndpoint<C, R, P, Q, H, B>): Endpoint {
  // The listener only ever calls the handler with what the declaration's own schemas and its own
  // way to authenticate have produced, so the precise request type can be forgotten here.
  return declaration;
}
