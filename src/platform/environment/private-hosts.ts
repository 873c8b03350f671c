import { BlockList, isIP } from 'node:net';
import { addNetwork } from '../../lib/add-network.js';
import { hostOf, isLoopback } from './loopback.js';

/** A network with its prefix length, or an address. */
const NETWORK = /^[\da-fA-F:.]+(\/\d{1,3})?$/;
const NAME = /^(?=.*[a-z])[a-z\d_]([a-z\d._-]*[a-z\d])?$/;

/** Hosts that an address may name without TLS in production. */
export class PrivateHosts {
  readonly #names = new Set<string>();
  readonly #networks = new BlockList();

  /** Adds a name, an address or a network. @throws for any other text */
  add(entry: string): void {
    const name = entry.toLowerCase();
    if (NAME.test(name) && isIP(name) === 0) this.#names.add(name);
    else if (NETWORK.test(entry)) addNetwork(this.#networks, entry);
    else throw new TypeError('neither a name nor a network');
  }

  /** Reports whether a host, with or without a port, is this machine or on the operator's own network. */
  has(host: string): boolean {
    if (isLoopback(host)) return true;
    const name = hostOf(host);
    const family = isIP(name);
    if (family === 0) return this.#names.has(name.toLowerCase().replace(/\.$/, ''));
    return this.#networks.check(name, family === 6 ? 'ipv6' : 'ipv4');
  }
}

export const NO_PRIVATE_HOSTS = new PrivateHosts();
