import { isIPv6 } from 'node:net';

/** Who a limit counts, by the address that they come from. */
export interface ClientNetworks {
  /** One IPv4 address, or the /64 of an IPv6 address: whoever has one address of it has all. */
  readonly host: string;
  /** The same IPv4 address, or the /48 of an IPv6 address, which is what one site is given. */
  readonly site: string;
}

export function networksOf(address: string): ClientNetworks {
  if (!isIPv6(address)) return { host: address, site: address };
  const [head = '', tail] = address.toLowerCase().split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail ? tail.split(':') : [];
  // A dotted tail (64:ff9b::192.0.2.1) is two groups long.
  const restLength = rest.length + (tail?.includes('.') ? 1 : 0);
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - restLength);
  const full = [...groups, ...Array<string>(zeros).fill('0'), ...rest];
  const network = full.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''));
  return { host: `${network.join(':')}::/64`, site: `${network.slice(0, 3).join(':')}::/48` };
}
