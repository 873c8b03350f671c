import type { TenantTransaction } from '../database/database.js';
import { UnavailableError } from '../errors.js';
import { leastLoaded, type HostLoad } from './host-status.js';
import { hostLoads } from './hosts.js';

/**
 * Chooses the host for one more agent. No other creation chooses until this transaction has ended,
 * so that two that meet at the last free place admit one.
 *
 * @returns the host's id.
 * @throws UnavailableError when no host can take an agent.
 */
export async function placeAgent(db: TenantTransaction): Promise<string> {
  await db.lock('hosts');
  const hosts = await hostLoads(db);
  const host = leastLoaded(hosts);
  if (!host) throw new UnavailableError(refusalOf(hosts));
  return host.id;
}

/** An agent on a host that nobody has heard of could wait for ever, so there is no default. */
function refusalOf(hosts: readonly HostLoad[]): string {
  return hosts.length === 0
    ? 'No agent can be created before the worker of a Docker host has come up'
    : 'No Docker host can take another agent now: each is full, cordoned, silent, ' +
        'short of disk or without its engine';
}
