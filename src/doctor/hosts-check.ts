import { agentSettings } from '../agents/lifecycle/settings.js';
import { freePlaces, statusOf } from '../agents/hosts/host-status.js';
import { hostDetails, type HostDetail } from '../agents/hosts/hosts.js';
import type { Database } from '../platform/database/database.js';
import { readAreas, type Environment } from '../platform/environment/read.js';
import { failure, ok, warning, type Finding } from './check.js';

/**
 * Checks by the reports of all workers that their hosts accept agents, and that agents' networks are guarded.
 */
export async function checkHosts(database: Database, env: Environment): Promise<Finding[]> {
  const hosts = await hostDetails(database);
  const { egress } = readAreas({ agents: agentSettings }, env).agents;
  const findings = hosts.flatMap((host) => [stateOf(host), ...networkOf(host, egress === 'open')]);
  const takes = hosts.some((host) => statusOf(host) === 'ready' && freePlaces(host) > 0);
  if (takes) return findings;
  const remedy = hosts.length === 0 ? ': start the worker of a Docker host' : ', see its lines';
  return [...findings, failure(`No host accepts another agent${remedy}.`)];
}

function stateOf(host: HostDetail): Finding {
  const name = `Host ${host.id}`;
  const taken = `${host.agents} of ${host.capacity} places are occupied`;
  switch (statusOf(host)) {
    case 'removing':
      return warning(`${name} is being removed.`);
    case 'silent':
      return failure(
        `${name} has not reported for ${Math.round(host.unseenSeconds)} s: start its worker, or remove the host.`,
      );
    case 'engine_unavailable':
      return failure(`${name} accepts no agents: its Docker does not answer. Start Docker there.`);
    case 'disk_low':
      return failure(`${name} accepts no agents: its disk is nearly full. Free some space there.`);
    case 'network_open':
      return failure(`${name} accepts no agents: its networks would be open. ${HOW}`);
    case 'cordoned':
      return warning(`${name} is cordoned: it accepts no agents until you uncordon it.`);
    case 'ready':
      return freePlaces(host) > 0
        ? ok(`${name} is ready; ${taken}.`)
        : warning(
            `${name} is full: ${taken}. Widen AGENT_PORT_RANGE, raise AGENT_HOST_CAPACITY or add a host.`,
          );
  }
}

const HOW = 'See docs/security.md, "Network access of agents".';

/** Returns a finding about networks that are not known to be guarded. */
function networkOf({ egress, egressReason, id }: HostDetail, isWanted: boolean): Finding[] {
  if (egress === 'guarded') return [];
  const reason = egressReason === null ? '' : ` (${egressReason})`;
  if (egress === 'unknown') {
    return [warning(`Networks of agents on host ${id} are not checked yet${reason}.`)];
  }
  const text = `Agents on host ${id} reach private networks and the host itself${reason}.`;
  return [isWanted ? warning(text) : failure(`${text} ${HOW}`)];
}
