import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { hostOf } from '../../platform/environment/loopback.js';
import type { PrivateHosts } from '../../platform/environment/private-hosts.js';
import { isGloballyReachable } from '../../platform/outbound/reachable.js';

const LOOKUP_MS = 2_000;

/**
 * Reports whether an address is on this machine or a private network: its host is one of `PRIVATE_HOSTS`, or
 * none of its IP addresses is public. A name without an address counts as public.
 */
export async function isPrivateServer(address: string, hosts: PrivateHosts): Promise<boolean> {
  const host = hostOf(new URL(address).hostname.replace(/^\[|\]$/g, ''));
  if (hosts.has(host) || /(^|\.)localhost\.?$/.test(host)) return true;
  if (isIP(host) !== 0) return !isGloballyReachable(host);
  try {
    // Unlike a query to the name servers, this also reads the machine's own file of hosts.
    const found = await Promise.race([
      lookup(host, { all: true }),
      delay(LOOKUP_MS, [], { ref: false }),
    ]);
    return found.length > 0 && found.every(({ address: ip }) => !isGloballyReachable(ip));
  } catch {
    return false; // no such name
  }
}
