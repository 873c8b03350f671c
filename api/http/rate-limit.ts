import type { ClientNetworks } from '../../src/platform/http/client-networks.js';

/** At most `max` requests of one client within `windowMs`, counted from the first of them. */
export interface RateLimit {
  /** Unique within a listener. */
  readonly name: string;
  /** Counts a whole site (the /48 of an IPv6 address) as one client; one host unless said. */
  readonly by?: 'site';
  readonly max: number;
  readonly windowMs: number;
  /** The error text of a refusal. */
  readonly message: string;
}

/** A limit on all that is asked of a listener below a path, whether it is there or not. */
export interface WideLimit extends RateLimit {
  readonly below: string;
}

/** One, or several that all hold. */
export type Limits = RateLimit | readonly RateLimit[];

/** The limits that an endpoint's requests count in. */
export function limitsOf(
  { limit = [], path }: { readonly limit?: Limits | undefined; readonly path: string },
  wide: readonly WideLimit[],
): readonly RateLimit[] {
  return [...wide.filter(({ below }) => path.startsWith(below)), ...[limit].flat()];
}

/** What one limit says of one request. */
export interface Count {
  readonly limit: RateLimit;
  /** Requests that are left in the window after this one. */
  readonly remaining: number;
  /** Milliseconds until the window ends. */
  readonly resetMs: number;
}

/** The outcome for all limits of a request together: it counts in all of them, or in none. */
export interface Taken {
  readonly refused: boolean;
  readonly counts: readonly Count[];
}

/** Counts requests. Implementations admit exactly `max`, however many come at once. */
export interface Counters {
  take(client: ClientNetworks, limits: readonly RateLimit[]): Taken | Promise<Taken>;
  close(): Promise<void>;
}

export const countedClient = (client: ClientNetworks, { by }: RateLimit): string =>
  by === 'site' ? client.site : client.host;
