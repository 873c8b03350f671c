import type { TenantTransaction } from '../../platform/database/database.js';
import { DockerAwayError, UnavailableError } from '../../lib/errors.js';
import { leastLoaded, type HostLoad } from './host-status.js';
import { hostLoads } from './hosts.js';

/**
 * Chooses the host for one more agent and locks placement for the transaction.
 * @param where `notOn`: a host whose engine was just found unavailable. `on`: the only host to consider.
 * @throws UnavailableError if no host can take an agent; DockerAwayError if only `notOn` could.
 */
export async function placeAgent(
  db: TenantTransaction,
  { notOn, on }: { readonly notOn?: string | undefined; readonly on?: string | undefined } = {},
): Promise<string> {
  await db.lock('hosts');
  const hosts = await hostLoads(db);
  const host = leastLoaded(
    hosts.filter(({ id }) => id !== notOn && (on === undefined || id === on)),
  );
  if (host) return host.id;
  if (on !== undefined && on !== notOn) throw new UnavailableError(NOT_BESIDE);
  throw notOn === undefined ? new UnavailableError(refusalOf(hosts)) : new DockerAwayError();
}

const NOT_BESIDE =
  'The Docker host of the agent has no free place now, and a clone needs a place on the same host';

/** Returns the refusal: there is no default host, since an agent on an unknown host could wait forever. */
function refusalOf(hosts: readonly HostLoad[]): string {
  return hosts.length === 0
    ? 'No agent can be created before the worker of a Docker host has started'
    : 'No Docker host has a free place for an agent now: each host is full, cordoned, silent, ' +
        'short of disk, without its engine or without a guard of its networks';
}
