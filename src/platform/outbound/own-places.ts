import { networkInterfaces } from 'node:os';
import { canonicalAddress } from './reachable.js';

/** Addresses of this machine's network interfaces, public ones included. */
export type OwnAddresses = () => readonly string[];

export const interfaceAddresses: OwnAddresses = () =>
  Object.values(networkInterfaces()).flatMap((found) =>
    (found ?? []).map(({ address }) => address),
  );

/** Milliseconds for which addresses are cached: reading them costs a fifth of the CPU time of a small fetch. */
const KEPT_MS = 5_000;

/** Recognizes this machine's addresses and the platform's own host names, however they are spelled. */
export class OwnPlaces {
  readonly #hosts: ReadonlySet<string>;
  readonly #readAddresses: OwnAddresses;
  readonly #now: () => number;
  #addresses: ReadonlySet<string> = new Set();
  #readAt = -Infinity;

  /** @param urls addresses at which the platform itself is reached. */
  constructor(
    urls: readonly string[],
    addresses: OwnAddresses = interfaceAddresses,
    now: () => number = () => performance.now(),
  ) {
    this.#hosts = new Set(urls.map((url) => plain(new URL(url).hostname)));
    this.#readAddresses = addresses;
    this.#now = now;
  }

  hasHost(host: string): boolean {
    return this.#hosts.has(plain(host));
  }

  /** Reports whether one of the addresses is this machine's, as its interfaces were at most five seconds ago. */
  hasAddress(addresses: readonly string[]): boolean {
    if (this.#now() - this.#readAt >= KEPT_MS) {
      this.#addresses = new Set(this.#readAddresses().map(canonicalAddress));
      this.#readAt = this.#now();
    }
    return addresses.some((address) => this.#addresses.has(canonicalAddress(address)));
  }
}

const plain = (host: string) => host.toLowerCase().replace(/^\[|\]$|\.$/g, '');
