import type Koa from 'koa';
import type { Identity } from '../../auth/authentication.js';
import type { ErrorForm, ReplyTo, Responses } from '../endpoint.js';
import type { HandlerRequest } from '../endpoint-request.js';
import type { Verdict } from '../limiter.js';
import type { Answer } from '../presenter.js';

/** `ctx.state` from the arrival of a request. */
export interface ArrivedState {
  requestId: string;
  clientAddress: string;
  /** Set where the endpoint has its own form of errors. */
  errorForm?: ErrorForm;
  /** The verdict of the limits that count the address. */
  addressVerdict?: Verdict;
  /** The bytes of the body, once they are read. */
  bytes?: Buffer | undefined;
  identity?: Identity;
  answer?: Answer;
}

/** `ctx.state` after authentication. */
export interface AuthenticatedState extends ArrivedState {
  identity: Identity;
}

/** The parts of a request that its endpoint's schemas have checked. */
export interface Input {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

/** `ctx.state` after validation. */
export interface ValidatedState extends AuthenticatedState {
  input: Input;
}

/** `ctx.state` with the request that the handler gets. */
export interface AdmittedState extends ValidatedState {
  request: HandlerRequest;
}

/** `ctx.state` after the handler. */
export interface HandledState extends AdmittedState {
  reply: ReplyTo<Responses>;
}

/** `ctx.state` after presentation. */
export interface PresentedState extends HandledState {
  answer: Answer;
}

/** The facts that the router leaves in the context. */
interface Routed {
  readonly params: Readonly<Record<string, string>>;
  /** The endpoints with this path, whatever their methods. */
  readonly matched?: readonly { readonly methods: readonly string[] }[];
  /** The path as its endpoint declares it. */
  readonly _matchedRoute?: string | RegExp;
}

export type Context<State extends ArrivedState = ArrivedState> = Koa.ParameterizedContext<
  State,
  Routed
>;

/** A Koa middleware that reads this state. */
export type Middleware<State extends ArrivedState = ArrivedState> = (
  ctx: Context<State>,
  next: () => Promise<void>,
) => Promise<void>;
