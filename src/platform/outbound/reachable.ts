import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { addNetwork } from '../../lib/add-network.js';
import { NOT_PUBLIC } from './not-public.js';

/** Azure's metadata server, whose address is registered as public. */
const METADATA = '168.63.129.16';

/** The globally assigned part of IPv6; the rest is local, reserved or internal. */
const GIVEN_OUT = '2000::/3';

/** Parts of the assigned range that lead elsewhere or nowhere (IANA's special-purpose registry). */
const SPECIAL_V6 = [
  '2001::/23', // protocol assignments, including Teredo
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation
];

/** The NAT64 prefix: the last 32 bits are the IPv4 address that is reached. */
const NAT64 = '64:ff9b::/96';

const blocked4 = listOf([...NOT_PUBLIC, `${METADATA}/32`]);
const givenOut = listOf([GIVEN_OUT]);
const special6 = listOf(SPECIAL_V6);
const nat64 = listOf([NAT64]);

/** Reports whether an address is globally reachable; names and addresses with a zone are not. */
export function isGloballyReachable(address: string): boolean {
  if (isIPv4(address)) return !blocked4.check(address, 'ipv4');
  if (!isIPv6(address) || address.includes('%')) return false;
  if (nat64.check(address, 'ipv6')) return isGloballyReachable(lastFourBytes(address));
  if (isIsatap(address)) return false;
  return givenOut.check(address, 'ipv6') && !special6.check(address, 'ipv6');
}

/** Reports whether an address is ISATAP: an IPv4 address after `0:5efe` or `200:5efe`. */
const isIsatap = (address: string): boolean => {
  const groups = groupsOf(address);
  return groups[5] === 0x5efe && (groups[4] === 0 || groups[4] === 0x200);
};

function lastFourBytes(address: string): string {
  const [high = 0, low = 0] = groupsOf(address).slice(6);
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

function groupsOf(address: string): readonly number[] {
  // URL parsing normalizes the address: no dotted tail and at most one `::`.
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

/** Places that may be reached although they are not public. */
export interface Allowed {
  readonly entries: readonly string[];
  readonly networks: BlockList;
  /** Entries of the form `address:port`, normalized by `net`. */
  readonly places: ReadonlySet<string>;
}

export const NO_EXCEPTIONS: Allowed = { entries: [], networks: new BlockList(), places: new Set() };

/**
 * Parses the allowed places.
 * @param entries such as `10.0.0.0/8`, `192.168.1.5`, `127.0.0.1:8080` and `[::1]:8080`.
 * @returns undefined if an entry is invalid.
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
        return undefined; // not an address, or not a prefix length
      }
    }
  }
  return { entries, networks, places };
}

/** Reports whether requests of users may go to this address and port. */
export function isReachAllowed(address: string, port: number, allowed: Allowed): boolean {
  return isGloballyReachable(address) || isExplicitlyAllowed(address, port, allowed);
}

/** Reports whether the operator has allowed the address in `OUTBOUND_ALLOW`. */
export function isExplicitlyAllowed(address: string, port: number, allowed: Allowed): boolean {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  return (
    !address.includes('%') &&
    (allowed.places.has(placeOf(address, port)) || allowed.networks.check(address, family))
  );
}

/** Returns one spelling of an address; IPv4 behind NAT64 is the IPv4 address. Other texts are unchanged. */
export function canonicalAddress(address: string): string {
  const [unzoned = ''] = address.split('%');
  if (!isIPv6(unzoned)) return address;
  return nat64.check(unzoned, 'ipv6') ? lastFourBytes(unzoned) : groupsOf(unzoned).join(':');
}

const placeOf = (address: string, port: number): string =>
  isIPv6(address) ? `${groupsOf(address).join(':')} ${port}` : `${address} ${port}`;
