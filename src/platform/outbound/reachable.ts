import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { NOT_PUBLIC } from './not-public.js';

/** Azure's host, which serves metadata from an address that is public by registry. */
const METADATA = '168.63.129.16';

/** The part of IPv6 that is given out; all else is local, reserved or for use inside. */
const GIVEN_OUT = '2000::/3';

/** What of it leads elsewhere than it says, or nowhere: IANA's special-purpose registry. */
const SPECIAL_V6 = [
  '2001::/23', // protocol assignments, Teredo among them
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation
];

/** IPv4 behind NAT64: what is reached is the IPv4 address in its last 32 bits. */
const NAT64 = '64:ff9b::/96';

const blocked4 = listOf([...NOT_PUBLIC, `${METADATA}/32`]);
const givenOut = listOf([GIVEN_OUT]);
const special6 = listOf(SPECIAL_V6);
const nat64 = listOf([NAT64]);

/** Whether an address is one that everybody reaches: no name, and no zone. */
export function isGloballyReachable(address: string): boolean {
  if (isIPv4(address)) return !blocked4.check(address, 'ipv4');
  if (!isIPv6(address) || address.includes('%')) return false;
  if (nat64.check(address, 'ipv6')) return isGloballyReachable(lastFourBytes(address));
  if (isIsatap(address)) return false;
  return givenOut.check(address, 'ipv6') && !special6.check(address, 'ipv6');
}

/** ISATAP: an IPv4 address behind `0:5efe` or `200:5efe`. */
const isIsatap = (address: string): boolean => {
  const groups = groupsOf(address);
  return groups[5] === 0x5efe && (groups[4] === 0 || groups[4] === 0x200);
};

function lastFourBytes(address: string): string {
  const [high = 0, low = 0] = groupsOf(address).slice(6);
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): readonly number[] {
  // As browsers write it: no dotted tail, one run of zeros left out.
  const text = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [head = '', tail = ''] = text.split('::');
  const numbers = (part: string) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const [first, last] = [numbers(head), numbers(tail)];
  return [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) addNetwork(list, network);
  return list;
}

function addNetwork(list: BlockList, network: string): void {
  const [address = '', bits] = network.split('/');
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  list.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family);
}

/** What may be reached although it is not globally reachable. */
export interface Allowed {
  /** As they were given. */
  readonly entries: readonly string[];
  readonly networks: BlockList;
  /** `address:port`, addresses as `net` writes them. */
  readonly places: ReadonlySet<string>;
}

export const NOTHING_MORE: Allowed = { entries: [], networks: new BlockList(), places: new Set() };

/**
 * @param entries such as `10.0.0.0/8`, `192.168.1.5`, `127.0.0.1:8080` and `[::1]:8080`.
 * @returns undefined where one is none of these.
 */
export function readAllowed(entries: readonly string[]): Allowed | undefined {
  const networks = new BlockList();
  const places = new Set<string>();
  for (const entry of entries) {
    const [, v6, v4, digits] = /^(?:\[([\da-fA-F:.]+)\]|([\d.]+)):(\d{1,5})$/.exec(entry) ?? [];
    if (digits !== undefined) {
      const address = v6 ?? v4 ?? '';
      const port = Number(digits);
      if (!isIPv4(address) && !isIPv6(address)) return undefined;
      if (port < 1 || port > 65_535) return undefined;
      places.add(placeOf(address, port));
    } else {
      try {
        addNetwork(networks, entry);
      } catch {
        return undefined; // no address, or no length of a prefix
      }
    }
  }
  return { entries, networks, places };
}

/** Whether somebody's request may go there. */
export function mayReach(address: string, port: number, allowed: Allowed): boolean {
  return isGloballyReachable(address) || isNamed(address, port, allowed);
}

/** Whether the operator has named it, by `OUTBOUND_ALLOW`. */
export function isNamed(address: string, port: number, allowed: Allowed): boolean {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  return (
    !address.includes('%') &&
    (allowed.places.has(placeOf(address, port)) || allowed.networks.check(address, family))
  );
}

const placeOf = (address: string, port: number): string =>
  isIPv6(address) ? `${groupsOf(address).join(':')} ${port}` : `${address} ${port}`;
