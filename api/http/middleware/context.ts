import type Koa from 'koa';
import type { Identity } from '../../auth/authentication.js';
import type { ErrorForm, ReplyTo, Responses } from '../endpoint.js';
import type { HandlerRequest } from '../endpoint-request.js';
import type { Verdict } from '../limiter.js';
import type { Answer } from '../answer.js';

/** `ctx.state` from the arrival of a request. */
export interface ArrivedState {
  requestId: string;
  clientAddress: string;
  /** Set where the endpoint has its own form of errors. */
  errorForm?: ErrorForm;
  addressVerdict?: Verdict;
  bytes?: Buffer | undefined;
  identity?: Identity;
  answer?: Answer;
}

export interface AuthenticatedState extends ArrivedState {
  identity: Identity;
}

/** `ctx.state` with the request that the handler gets. */
export interface AdmittedState extends AuthenticatedState {
  request: HandlerRequest;
}

export interface HandledState extends AdmittedState {
  reply: ReplyTo<Responses>;
}

export interface PresentedState extends HandledState {
  answer: Answer;
}

interface Routed {
  readonly params: Readonly<Record<string, string>>;
  /** The endpoints with this path, regardless of their methods. */
  readonly matched?: readonly { readonly methods: readonly string[] }[];
  /** The path as its endpoint declares it. */
  readonly _matchedRoute?: string | RegExp;
}

export type Context<State extends ArrivedState = ArrivedState> = Koa.ParameterizedContext<
  State,
  Routed
>;

export type Middleware<State extends ArrivedState = ArrivedState> = (
  ctx: Context<State>,
  next: () => Promise<void>,
) => Promise<void>;

/** The part of a context that a call within a request has as well. */
export type CallContext<State extends ArrivedState = ArrivedState> = Pick<
  Context<State>,
  'req' | 'res' | 'set' | 'state'
>;

/** A middleware for calls within a request, and for requests themselves. */
export type CallMiddleware<State extends ArrivedState = ArrivedState> = (
  ctx: CallContext<State>,
  next: () => Promise<void>,
) => Promise<void>;
