import type { IncomingMessage } from 'node:http';

/** Whoever calls, as a handler sees them. */
export interface Caller {
  readonly kind: string;
}

/** Which rows a caller sees: those of one user, all, or none that belong to anybody. */
export type Sight = { readonly userId: string } | 'everything' | 'nothing';

/** Who a request was found to be from. */
export interface Identity<C extends Caller = Caller> {
  readonly caller: C;
  readonly sees: Sight;
  /** Whose an `Idempotency-Key` is: two callers with the same key never meet. */
  readonly scope: string;
  /** Keeps the first answer to an `Idempotency-Key` itself, so that it is not kept here as well. */
  readonly keepsAnswer?: boolean;
}

/** What a request shows for itself. */
export interface Presented {
  readonly request: IncomingMessage;
  readonly clientAddress: string;
  /** As it came; undefined where there is none, and for every way that headers prove. */
  readonly body: Buffer | undefined;
}

type Found<C extends Caller> = Identity<C> | undefined;

/** Finds out who calls; undefined for whoever does not prove it, who is answered with 401. */
export type Authenticate<C extends Caller> = (presented: Presented) => Found<C> | Promise<Found<C>>;

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
  /** Makes it ready for a listener. */
  prepare(given: Given): Authenticate<C>;
}

/** Whom a handler can meet under a way. */
export type CallerOf<A> = A extends Authentication<infer C> ? C : never;

/** A way that looks callers up in something, which its listener has to give it. */
export interface Grounded<Ground, C extends Caller> extends Authentication<C> {
  /** For the list of a listener. */
  with(ground: Ground): Grounding;
}

/** One line in the list of a listener: a way, and what it looks callers up in. */
export interface Grounding {
  readonly way: Authentication;
  readonly ground: unknown;
}

/** What a listener gives to the ways that its endpoints name. */
export class Given {
  readonly #grounds: ReadonlyMap<Authentication, unknown>;

  constructor(groundings: readonly Grounding[]) {
    this.#grounds = new Map(groundings.map(({ way, ground }) => [way, ground]));
  }

  /** @throws TypeError for a way that the listener does not have: its endpoints could not work. */
  to<Ground>(way: Grounded<Ground, Caller>): Ground {
    if (!this.#grounds.has(way))
      throw new TypeError(`the listener does not authenticate by ${way.name}`);
    // Only the way's own `with` has put it there.
    return this.#grounds.get(way) as Ground;
  }
}

/** Declares a way that looks callers up in something. */
export function groundedAuthentication<Ground, C extends Caller>(
  way: Description & { prepare(ground: Ground, given: Given): Authenticate<C> },
): Grounded<Ground, C> {
  const grounded: Grounded<Ground, C> = {
    ...way,
    prepare: (given) => way.prepare(given.to(grounded), given),
    with: (ground) => ({ way: grounded, ground }),
  };
  return grounded;
}

/** Declares a way that needs nothing, or is made of others. */
export function authentication<C extends Caller>(way: Authentication<C>): Authentication<C> {
  return way;
}
