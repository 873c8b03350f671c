import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6, type BlockList } from 'node:net';

/** Reads the address of the client behind a request, as plain IPv4 or IPv6. */
export type AddressReader = (request: IncomingMessage) => string;

/** Creates a reader of client addresses, which follows `X-Forwarded-For` from the right while trusted. */
export function addressReader(
  trustedProxies: BlockList,
  believes: (request: IncomingMessage) => boolean = () => false,
): AddressReader {
  const isTrusted = (address: string) => inNetworks(trustedProxies, address);

  return (request) => {
    let address = plainAddress(request.socket.remoteAddress ?? '');
    const forwarded = request.headers['x-forwarded-for'];
    if (typeof forwarded !== 'string') return address;
    if (!isTrusted(address) && !believes(request)) return address;

    // Elements of a list may be empty.
    const hops = forwarded.split(',').filter((hop) => hop.trim() !== '');
    while (hops.length > 0) {
      const hop = addressOfHop(hops.pop()?.trim() ?? '');
      if (!isIPv4(hop) && !isIPv6(hop)) break;
      address = hop;
      if (!isTrusted(hop)) break;
    }
    return address;
  };
}

/** Returns the address of a hop, which some proxies write with its port: `192.0.2.1:40001`, `[2001:db8::1]:40001`. */
function addressOfHop(hop: string): string {
  const [, inBrackets, beforePort] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(hop) ?? [];
  return plainAddress(inBrackets ?? beforePort ?? hop);
}

/** Converts an IPv4-mapped IPv6 address (`::ffff:127.0.0.1`) to IPv4 and strips the zone index. */
export function plainAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return mapped ?? address.split('%', 1)[0] ?? '';
}

export function inNetworks(networks: BlockList, address: string): boolean {
  if (isIPv4(address)) return networks.check(address, 'ipv4');
  return isIPv6(address) && networks.check(address, 'ipv6');
}
