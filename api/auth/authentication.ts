import type { IncomingMessage } from 'node:http';
import type { KeyScope } from '../../src/types/key-scopes.js';

export interface Caller {
  readonly kind: string;
}

/** The rows that a caller sees: one user's, all users', or none. */
export type TenantOfCaller = { readonly userId: string } | 'platform' | 'none';

/** The result of authenticating a request. */
export interface Identity<C extends Caller = Caller> {
  readonly caller: C;
  readonly tenant: TenantOfCaller;
  /** Namespace of `Idempotency-Key`: the same key in two scopes never collides. */
  readonly scope: string;
  /** Client of the caller's rate limits; the scope by default. */
  readonly limitedAs?: string | undefined;
  /** Name in the access log, of the credential rather than of its user; the scope by default. */
  readonly loggedAs?: string;
  /** Scopes of the API key that the request carries; undefined for any other credential. */
  readonly keyScopes?: readonly KeyScope[] | undefined;
  /** True if the caller stores the first answer to an `Idempotency-Key` itself, so this listener does not. */
  readonly storesResponse?: boolean;
}

export interface AuthenticationRequest {
  readonly request: IncomingMessage;
  readonly clientAddress: string;
  /** The raw body; undefined without a body, and for all authentication by headers. */
  readonly body: Buffer | undefined;
}

type Found<C extends Caller> = Identity<C> | undefined;

/** Identifies the caller; undefined without valid proof, which is answered with 401. */
export type Authenticate<C extends Caller> = (
  request: AuthenticationRequest,
) => Found<C> | Promise<Found<C>>;

export type SecurityScheme = Readonly<Record<string, string>>;

interface Description {
  readonly name: string;
  /** Alternatives, each of which opens the endpoint; all schemes within one entry are required together. */
  readonly schemes: readonly Readonly<Record<string, SecurityScheme>>[];
  /** True if requests without credentials are let in too. */
  readonly optional?: boolean;
  /** Error statuses that this authentication adds to its endpoints. */
  readonly errors: readonly number[];
  /** Error statuses that it adds to endpoints that change something. */
  readonly errorsOfChanges?: readonly number[] | undefined;
  /** Place of the proof; default `headers`, for which the body is read only after authentication. */
  readonly proof?: 'headers' | 'body';
}

/** An authentication method, named by an endpoint as its `auth`. */
export interface Authentication<C extends Caller = Caller> extends Description {
  /** Prepares this method for a listener, with the listener's configuration. */
  prepare(configs: AuthenticationConfigs): Authenticate<C>;
}

/** The callers that a handler can get from an authentication method. */
export type CallerOf<A> = A extends Authentication<infer C> ? C : never;

/** An authentication method that the listener configures, with a key or with a lookup of callers. */
export interface ConfigurableAuthentication<Config, C extends Caller> extends Authentication<C> {
  with(config: Config): AuthenticationConfig;
}

export interface AuthenticationConfig {
  readonly method: Authentication;
  readonly config: unknown;
}

/** A listener's configurations of the authentication methods that its endpoints name. */
export class AuthenticationConfigs {
  readonly #configs: ReadonlyMap<Authentication, unknown>;

  constructor(configs: readonly AuthenticationConfig[]) {
    this.#configs = new Map(configs.map(({ method, config }) => [method, config]));
  }

  /** Returns a method's configuration. @throws TypeError without one: its endpoints could not work. */
  of<Config>(method: ConfigurableAuthentication<Config, Caller>): Config {
    if (!this.#configs.has(method))
      throw new TypeError(`the listener does not authenticate by ${method.name}`);
    // Safe cast: only the method's own `with` stores its configuration.
    return this.#configs.get(method) as Config;
  }
}

export function configurableAuthentication<Config, C extends Caller>(
  method: Description & {
    prepare(config: Config, configs: AuthenticationConfigs): Authenticate<C>;
  },
): ConfigurableAuthentication<Config, C> {
  const configurable: ConfigurableAuthentication<Config, C> = {
    ...method,
    prepare: (configs) => method.prepare(configs.of(configurable), configs),
    with: (config) => ({ method: configurable, config }),
  };
  return configurable;
}

/** Declares an authentication method that needs no configuration of its own. */
export function authentication<C extends Caller>(method: Authentication<C>): Authentication<C> {
  return method;
}
