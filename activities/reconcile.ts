import { Context } from '@temporalio/activity';
import type { Reconciliation } from '../src/agents/operations/reconcile.js';
import {
  DockerRefusedError,
  ForeignContainerError,
} from '../src/docker/containers/container-errors.js';
import type { AgentRow } from '../src/platform/database/models.js';
import { dockerActivities } from './docker-activity.js';

const MAX_NAMED = 20;

export interface ReconcileActivityDependencies {
  readonly reconciliation: Reconciliation;
  readonly host: string;
  /** Makes the agents' supervisors probe their containers, at a bounded pace. */
  readonly wake: (agents: readonly AgentRow[]) => Promise<void>;
}

export function createReconcileActivities({
  reconciliation,
  host,
  wake,
}: ReconcileActivityDependencies) {
  return dockerActivities({
    /** Wakes the supervisors of agents that are not in their desired state, and returns how many. */
    async wakeDrifted() {
      let count = 0;
      for await (const agents of reconciliation.drifted(host)) {
        await wake(agents);
        count += agents.length;
      }
      return count;
    },

    /**
     * Removes leftovers that the previous pass found, too; returns the agents with leftovers for the next.
     */
    async removeOrphans(foundBefore: readonly string[]) {
      const { log } = Context.current();
      const strays = await reconciliation.removeStrays();
      if (strays.length > 0) {
        const containers = strays.slice(0, MAX_NAMED);
        log.warn("removed containers with an agent's labels beside its own", {
          containers,
          count: strays.length,
        });
      }
      const { removed, unknown } = await reconciliation.orphans();
      if (unknown.length > 0) {
        // Kept, because the database may be the wrong one or an older copy.
        const agentIds = unknown.slice(0, MAX_NAMED);
        log.warn('containers of unknown agents', { agentIds, count: unknown.length });
      }
      const volumes = await reconciliation.unknownVolumes();
      if (volumes.length > 0) {
        const named = volumes.slice(0, MAX_NAMED);
        log.warn('unknown volumes are kept', { volumes: named, count: volumes.length });
      }
      for (const agentId of removed.filter((id) => foundBefore.includes(id))) {
        try {
          if (await reconciliation.removeLeftOver(agentId)) {
            log.warn('removed leftovers of an agent', { agentId });
          }
        } catch (error) {
          // A failure for one agent does not block the others.
          if (!(error instanceof ForeignContainerError || error instanceof DockerRefusedError)) {
            throw error;
          }
          log.warn('leftovers of an agent could not be removed', {
            agentId,
            reason: error.message,
          });
        }
      }
      return removed;
    },
  });
}

export type ReconcileActivities = ReturnType<typeof createReconcileActivities>;
