import type { ClientNetworks } from '../../src/platform/http/client-networks.js';

/** At most `max` requests per client within `windowMs`, counted from the client's first request. */
export interface RateLimit {
  /** Name, unique within a listener. */
  readonly name: string;
  /** `site` counts a whole site (the /48 of an IPv6 address) as one client; default: a single host. */
  readonly by?: 'site';
  readonly max: number;
  readonly windowMs: number;
  readonly message: string;
}

/** A limit on all requests below a path, including paths without an endpoint. */
export interface WideLimit extends RateLimit {
  readonly below: string;
  /** Paths that the limit does not count. */
  readonly except?: readonly string[];
}

export type Limits = RateLimit | readonly RateLimit[];

export function limitsOf(
  { limit = [], path }: { readonly limit?: Limits | undefined; readonly path: string },
  wide: readonly WideLimit[],
): readonly RateLimit[] {
  const counted = wide.filter(
    ({ below, except }) => path.startsWith(below) && !except?.includes(path),
  );
  return [...counted, ...[limit].flat()];
}

export interface Count {
  readonly limit: RateLimit;
  readonly remaining: number;
  /** Milliseconds until the window ends. */
  readonly resetMs: number;
}

/** The outcome of all limits of a request: all of them count it, or none does. */
export interface Taken {
  readonly refused: boolean;
  readonly counts: readonly Count[];
}

/** Counts requests. Implementations admit exactly `max`, even for concurrent requests. */
export interface Counters {
  /** @param by 0 reads the counts without a change; default 1. */
  take(client: ClientNetworks, limits: readonly RateLimit[], by?: 0 | 1): Taken | Promise<Taken>;
  close(): Promise<void>;
}

export const countedClient = (client: ClientNetworks, { by }: RateLimit): string =>
  by === 'site' ? client.site : client.host;
