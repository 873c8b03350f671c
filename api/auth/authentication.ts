import type { IncomingMessage } from 'node:http';

/** Whoever calls, as a handler sees them. */
export interface Caller {
  readonly kind: string;
}

/** Whose rows a caller sees: those of one user, everybody's, or nobody's. */
export type TenantOfCaller = { readonly userId: string } | 'platform' | 'none';

/** Who a request was found to be from. */
export interface Identity<C extends Caller = Caller> {
  readonly caller: C;
  readonly tenant: TenantOfCaller;
  /** Whose an `Idempotency-Key` is: two callers with the same key never meet. */
  readonly scope: string;
  /** Keeps the first answer to an `Idempotency-Key` itself, so that it is not kept here as well. */
  readonly keepsAnswer?: boolean;
}

/** What a request is authenticated by. */
export interface AuthenticationRequest {
  readonly request: IncomingMessage;
  readonly clientAddress: string;
  /** As it came; undefined where there is none, and for every way that headers prove. */
  readonly body: Buffer | undefined;
}

type Found<C extends Caller> = Identity<C> | undefined;

/** Finds out who calls; undefined for whoever does not prove it, who is answered with 401. */
export type Authenticate<C extends Caller> = (
  request: AuthenticationRequest,
) => Found<C> | Promise<Found<C>>;

/** A security scheme of OpenAPI. */
export type SecurityScheme = Readonly<Record<string, string>>;

interface Description {
  readonly name: string;
  /** Any one of these opens the endpoint: what stands in one is needed together. */
  readonly schemes: readonly Readonly<Record<string, SecurityScheme>>[];
  /** Whether nothing at all opens it too. */
  readonly optional?: boolean;
  /** Error statuses that it adds to its endpoints. */
  readonly errors: readonly number[];
  /** Those that it adds where something is changed. */
  readonly errorsOfChanges?: readonly number[] | undefined;
  /** What proves it; headers unless said. Before that nothing of a body is read. */
  readonly proof?: 'headers' | 'body';
}

/** A way to authenticate: what an endpoint names as its `auth`. */
export interface Authentication<C extends Caller = Caller> extends Description {
  /** Makes it ready for a listener, which has configured what needs that. */
  prepare(configs: AuthenticationConfigs): Authenticate<C>;
}

/** Whom a handler can meet under a way. */
export type CallerOf<A> = A extends Authentication<infer C> ? C : never;

/** A way that a listener configures: with a key, or with what callers are looked up in. */
export interface ConfigurableAuthentication<Config, C extends Caller> extends Authentication<C> {
  /** For the list of a listener. */
  with(config: Config): AuthenticationConfig;
}

/** A way, and how a listener configures it. */
export interface AuthenticationConfig {
  readonly way: Authentication;
  readonly config: unknown;
}

/** How a listener configures the ways that its endpoints name. */
export class AuthenticationConfigs {
  readonly #configs: ReadonlyMap<Authentication, unknown>;

  constructor(configs: readonly AuthenticationConfig[]) {
    this.#configs = new Map(configs.map(({ way, config }) => [way, config]));
  }

  /** @throws TypeError for a way that the listener does not have: its endpoints could not work. */
  of<Config>(way: ConfigurableAuthentication<Config, Caller>): Config {
    if (!this.#configs.has(way))
      throw new TypeError(`the listener does not authenticate by ${way.name}`);
    // Only the way's own `with` has put it there.
    return this.#configs.get(way) as Config;
  }
}

/** Declares a way that a listener configures. */
export function configurableAuthentication<Config, C extends Caller>(
  way: Description & { prepare(config: Config, configs: AuthenticationConfigs): Authenticate<C> },
): ConfigurableAuthentication<Config, C> {
  const configurable: ConfigurableAuthentication<Config, C> = {
    ...way,
    prepare: (configs) => way.prepare(configs.of(configurable), configs),
    with: (config) => ({ way: configurable, config }),
  };
  return configurable;
}

/** Declares a way that needs nothing, or is made of others. */
export function authentication<C extends Caller>(way: Authentication<C>): Authentication<C> {
  return way;
}
