import { Context } from '@temporalio/activity';
import { ensureSupervisors, type SupervisionParts } from '../src/agents/operations/supervision.js';
import { dockerActivity } from './docker-activity.js';

/** Ids that a line of the log, and the result of a pass, name. */
const MAX_NAMED = 20;

/** What a pass over a host found of its agents' supervisors; at most 20 ids of each are named. */
export type SupervisionFound = Awaited<
  ReturnType<ReturnType<typeof createSupervisionActivities>['ensureSupervisors']>
>;

/** What any worker does for the supervisors of a host's agents. */
export function createSupervisionActivities(parts: SupervisionParts) {
  return {
    /**
     * Starts the supervisors anew that are not there or do not move, ends what is in their way, and tells
     * who is not seen.
     */
    ensureSupervisors: (host: string) =>
      dockerActivity(async () => {
        const { log, metricMeter } = Context.current();
        const { missing, stuck, blocked, failed, unseen } = await ensureSupervisors(parts, host);
        const tell = (agentIds: readonly string[], message: string) => {
          const count = agentIds.length;
          if (count > 0) log.warn(message, { host, count, agentIds: agentIds.slice(0, MAX_NAMED) });
        };
        const figures = { missing, stuck, blocked, unseen };
        for (const [what, { length }] of Object.entries(figures)) {
          metricMeter
            .createGauge(`agent_supervisors_${what}`, 'int', undefined, 'By the last pass')
            .set(length, { host });
        }
        tell(missing, 'agents had no supervisor: it was started anew');
        tell(stuck, 'supervisors could not go on: they were ended and started anew');
        tell(blocked, 'repairs or provisionings could not go on: they were ended');
        tell(failed, 'supervisors could not be asked after');
        tell(unseen, 'agents were not seen for three check intervals');
        return {
          missing: missing.length,
          stuck: stuck.length,
          blocked: blocked.length,
          failed: failed.length,
          unseen: unseen.slice(0, MAX_NAMED),
        };
      }),
  };
}

export type SupervisionActivities = ReturnType<typeof createSupervisionActivities>;
