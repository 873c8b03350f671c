import { networkInterfaces } from 'node:os';
import { canonicalAddress } from './reachable.js';

/** Addresses of this machine's network interfaces, public ones included. */
export type OwnAddresses = () => readonly string[];

export const interfaceAddresses: OwnAddresses = () =>
  Object.values(networkInterfaces()).flatMap((found) =>
    (found ?? []).map(({ address }) => address),
  );

/** Recognizes this machine's addresses and the platform's own host names, however they are spelled. */
export class OwnPlaces {
  readonly #hosts: ReadonlySet<string>;
  readonly #addresses: OwnAddresses;

  /** @param urls addresses at which the platform itself is reached. */
  constructor(urls: readonly string[], addresses: OwnAddresses = interfaceAddresses) {
    this.#hosts = new Set(urls.map((url) => plain(new URL(url).hostname)));
    this.#addresses = addresses;
  }

  hasHost(host: string): boolean {
    return this.#hosts.has(plain(host));
  }

  /** Reports whether one of the addresses is this machine's; interfaces may change at any time. */
  hasAddress(addresses: readonly string[]): boolean {
    const own = new Set(this.#addresses().map(canonicalAddress));
    return addresses.some((address) => own.has(canonicalAddress(address)));
  }
}

const plain = (host: string) => host.toLowerCase().replace(/^\[|\]$|\.$/g, '');
