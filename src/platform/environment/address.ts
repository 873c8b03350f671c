import * as z from 'zod';
import type { Mode } from './area.js';
import { NO_PRIVATE_HOSTS } from './private-hosts.js';

interface Scheme {
  /** How to use TLS, for schemes without TLS of their own. */
  readonly advice?: string;
  /** Reports whether an address of a scheme with advice states that it uses TLS, or that it does not. */
  readonly isStated?: (query: URLSearchParams) => boolean;
}

const POSTGRES: Scheme = {
  advice: 'say sslmode=verify-full, or sslmode=disable if the network is trusted,',
  isStated: (query) => {
    const mode = query.get('sslmode') ?? (query.get('ssl') === 'true' ? 'verify-full' : 'prefer');
    return mode !== 'prefer' && mode !== 'allow';
  },
};

/** The schemes of all addresses in settings. */
const SCHEMES = {
  http: { advice: 'start with https://' },
  https: {},
  redis: { advice: 'start with rediss://' },
  rediss: {},
  tcp: { advice: 'start with https://' },
  unix: {},
  npipe: {},
  postgres: POSTGRES,
  postgresql: POSTGRES,
  // The transport requires STARTTLS unless the address has `requireTLS=false`.
  smtp: {},
  smtps: {},
} satisfies Readonly<Record<string, Scheme>>;

export type SchemeName = keyof typeof SCHEMES;

const schemeOf = ({ protocol }: URL): Scheme | undefined =>
  Object.entries<Scheme>(SCHEMES).find(([name]) => `${name}:` === protocol)?.[1];

/**
 * Returns why an address is refused in production: its traffic leaves this machine and the operator's own
 * network without TLS, and the address does not allow that explicitly.
 */
export function plainFault(
  address: string,
  { privateHosts = NO_PRIVATE_HOSTS }: Pick<Mode, 'privateHosts'>,
): string | undefined {
  const url = new URL(address);
  const { advice, isStated } = schemeOf(url) ?? {};
  // Only PostgreSQL's addresses may name another host in the query.
  const host = (isStated && url.searchParams.get('host')) || url.host;
  if (advice === undefined || privateHosts.has(host) || isStated?.(url.searchParams)) {
    return undefined;
  }
  return `must ${advice} in production, because its host is neither this machine nor named in PRIVATE_HOSTS`;
}

/**
 * Accepts the address of a service with one of the schemes, and strips trailing slashes. In production, addresses
 * beyond this machine and the operator's own network use TLS.
 */
export function address(mode: Mode, ...schemes: readonly SchemeName[]) {
  return addressOf(schemes, (value) => (mode.production ? plainFault(value, mode) : undefined));
}

/** Accepts the same with or without TLS, for a setting with a switch that its area checks by `plainFault`. */
export const switchedAddress = (...schemes: readonly SchemeName[]) =>
  addressOf(schemes, () => undefined);

function addressOf(schemes: readonly SchemeName[], faultOf: (value: string) => string | undefined) {
  const what = `an address that starts with ${schemes.join(':// or ')}://`;
  return z
    .string()
    .transform((value, context) => {
      const scheme = URL.canParse(value) ? new URL(value).protocol.slice(0, -1) : '';
      const isKnown = schemes.some((each) => each === scheme);
      const fault = isKnown ? faultOf(value) : `must be ${what}`;
      if (fault === undefined) return value.replace(/(?<!\/)\/+$/, '');
      context.addIssue(fault);
      return z.NEVER;
    })
    .describe(what);
}
