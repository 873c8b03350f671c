import { Context } from '@temporalio/activity';
import type { Reconciliation } from '../src/agents/operations/reconcile.js';
import {
  DockerRefusedError,
  ForeignContainerError,
} from '../src/docker/containers/container-errors.js';
import type { AgentRow } from '../src/platform/database/models.js';
import { dockerActivities } from './docker-activity.js';

/** Ids that a line of the log names. */
const MAX_NAMED = 20;

export interface ReconcileActivityDependencies {
  readonly reconciliation: Reconciliation;
  /** The Docker host that this worker stands beside. */
  readonly host: string;
  /** Lets the agents' supervisors look at their containers, at a bounded pace. */
  readonly wake: (agents: readonly AgentRow[]) => Promise<void>;
}

/** What a host's worker does to bring together what runs and what should. */
export function createReconcileActivities({
  reconciliation,
  host,
  wake,
}: ReconcileActivityDependencies) {
  return dockerActivities({
    /** @returns how many agents were not as they should be: their supervisors look at them now. */
    async wakeDrifted() {
      let count = 0;
      for await (const agents of reconciliation.drifted(host)) {
        await wake(agents);
        count += agents.length;
      }
      return count;
    },

    /**
     * Removes what is left of agents that are removed, where the pass before found it as well.
     *
     * @returns the agents of which something was left, for the next pass.
     */
    async removeOrphans(foundBefore: readonly string[]) {
      const { log } = Context.current();
      const { removed, unknown } = await reconciliation.orphans();
      if (unknown.length > 0) {
        // Not removed: the database may be the wrong one, or an older one.
        const agentIds = unknown.slice(0, MAX_NAMED);
        log.warn('containers of agents that are not known', { agentIds, count: unknown.length });
      }
      const volumes = await reconciliation.unknownVolumes();
      if (volumes.length > 0) {
        const named = volumes.slice(0, MAX_NAMED);
        log.warn('volumes that are not known stay', { volumes: named, count: volumes.length });
      }
      for (const agentId of removed.filter((id) => foundBefore.includes(id))) {
        try {
          if (await reconciliation.removeLeftOver(agentId)) {
            log.warn('removed what was left of an agent', { agentId });
          }
        } catch (error) {
          // What stands in the way of one is not in the way of the others.
          if (!(error instanceof ForeignContainerError || error instanceof DockerRefusedError)) {
            throw error;
          }
          log.warn('what is left of an agent stays', { agentId, reason: error.message });
        }
      }
      return removed;
    },
  });
}

export type ReconcileActivities = ReturnType<typeof createReconcileActivities>;
