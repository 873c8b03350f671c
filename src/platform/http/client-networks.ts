import { isIPv6 } from 'node:net';

/** The networks of a client's address, for rate limits. */
export interface ClientNetworks {
  /** An IPv4 address, or the /64 of an IPv6 address, all of which one client has. */
  readonly host: string;
  /** The IPv4 address again, or the /48 of an IPv6 address: the usual allocation of one site. */
  readonly site: string;
}

/** Names the owner of a request for limiters: its user, or the site of a client without a sign-in. */
export const requestOwner = (userId: string | undefined, clientAddress: string): string =>
  userId ?? networksOf(clientAddress).site;

export function networksOf(address: string): ClientNetworks {
  if (!isIPv6(address)) return { host: address, site: address };
  const [head = '', tail] = address.toLowerCase().split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail ? tail.split(':') : [];
  // A dotted tail (64:ff9b::192.0.2.1) counts as two groups.
  const restLength = rest.length + (tail?.includes('.') ? 1 : 0);
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - restLength);
  const full = [...groups, ...Array<string>(zeros).fill('0'), ...rest];
  const network = full.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''));
  return { host: `${network.join(':')}::/64`, site: `${network.slice(0, 3).join(':')}::/48` };
}
