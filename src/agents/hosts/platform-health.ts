import type { Database } from '../../platform/database/database.js';
import { CheckFailedError, Readiness } from '../../platform/operators/readiness.js';
import type { AgentSupervisors } from '../operations/supervisors.js';
import { statusOf } from './host-status.js';
import { hostLoads } from './hosts.js';

/** Reports whether the platform can run agents: database, Temporal, and a host that accepts agents. */
export function platformHealth(
  database: Pick<Database, 'asPlatform' | 'ping'>,
  supervisors: Pick<AgentSupervisors, 'ping'>,
): Readiness {
  const health = new Readiness({
    database: () => database.ping(),
    temporal: () => supervisors.ping(),
    hosts: async () => {
      const hosts = await hostLoads(database.asPlatform());
      if (!hosts.some((host) => statusOf(host) === 'ready')) {
        throw new CheckFailedError('No host accepts agents');
      }
    },
  });
  health.serves();
  return health;
}
