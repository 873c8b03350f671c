import type { Logger } from 'pino';
import { configuredDocker } from '../src/docker/containers/docker-host.js';
import type { Database } from '../src/platform/database/database.js';
import { createHostServices } from '../src/services.js';
import type { Settings } from '../src/settings.js';
import { hostChecks } from './checks.js';
import { openHostEgress } from './host-egress.js';
import { openLocalRepair, type TemporalAtHand } from './local-repair.js';
import { alreadyRunning } from './parts.js';
import { HostLease } from './report-host.js';

interface HostRoleParts {
  readonly settings: Settings;
  readonly database: Database;
  readonly log: Logger;
  readonly atHand: TemporalAtHand;
}

/** Creates the parts of a worker that operate the Docker host on its machine, with or without Temporal. */
export function createHostRole({ settings, database, log, atHand }: HostRoleParts) {
  const id = settings.agents.host;
  const hostEgress = openHostEgress(settings, log);
  const docker = configuredDocker(settings, () => hostEgress.mayStart());
  const lease = new HostLease({
    database,
    docker,
    host: {
      id,
      capacity: settings.agents.hostCapacity,
      ports: settings.agents.portRange,
      url: settings.hosts.listener?.url,
    },
    runtime: settings.containers.runtime,
    egress: () => hostEgress.state,
    takeoverFrom: settings.agents.hostTakeover,
    log,
  });
  return {
    id,
    docker,
    hostEgress,
    /** The checks of readiness that concern the host. */
    checks: hostChecks(id, docker, lease),
    /** Starts what needs no Temporal, until `stop` aborts. @throws HostNameTakenError, RuntimeMissingError */
    async start(stop: AbortController) {
      // The lease on the host's name comes first: local repairs depend on it.
      await lease.report();
      const leasing = lease.keep(stop.signal);
      leasing.catch(() => stop.abort()); // Thrown to whoever waits for the lease.
      // Local repair comes second: since the machine started, Temporal may be unavailable and agents may be
      // down.
      const mayAct = () => !lease.isDoubtful;
      const local = await openLocalRepair({ settings, database, docker, log, atHand, mayAct });
      const repairing = local.run(stop.signal);
      const guarding = hostEgress.keep(stop.signal);
      return {
        /** Objects that the parts for this host use once Temporal was reached. */
        shared: {
          ...local.shared,
          docker,
          hostEgress,
          hostServices: createHostServices({ settings, database, docker }),
          lease,
        },
        knowsAgents: local.knowsAgents,
        leasing,
        parts: [
          alreadyRunning('local repair', repairing, stop),
          alreadyRunning("agents' networks", guarding, stop),
          alreadyRunning('host report', leasing, stop),
        ],
        /** Resolves when no repair is in flight any more. */
        ended: () => Promise.all([repairing, guarding]),
      };
    },
  };
}
