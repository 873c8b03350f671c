import { Context } from '@temporalio/activity';
import { ensureSupervisors, type SupervisionParts } from '../src/agents/operations/supervision.js';
import { dockerActivity } from './docker-activity.js';

const MAX_NAMED = 20;

export type SupervisionFound = Awaited<
  ReturnType<ReturnType<typeof createSupervisionActivities>['ensureSupervisors']>
>;

/** Receives the number of agents by the results of a pass over a host. */
export type OnSupervisionPass = (
  host: string,
  counts: Readonly<Record<'missing' | 'stuck' | 'blocked' | 'unseen', number>>,
) => void;

export function createSupervisionActivities(
  parts: SupervisionParts & { readonly onPass?: OnSupervisionPass | undefined },
) {
  return {
    /**
     * Restarts missing and stuck supervisors, ends workflows that block them, and reports unobserved agents.
     */
    ensureSupervisors: (host: string) =>
      dockerActivity(async () => {
        const { log } = Context.current();
        const { missing, stuck, blocked, failed, unseen } = await ensureSupervisors(parts, host);
        const notify = (agentIds: readonly string[], message: string) => {
          const count = agentIds.length;
          if (count > 0) log.warn(message, { host, count, agentIds: agentIds.slice(0, MAX_NAMED) });
        };
        parts.onPass?.(host, {
          missing: missing.length,
          stuck: stuck.length,
          blocked: blocked.length,
          unseen: unseen.length,
        });
        notify(missing, 'agents had no supervisor: it was restarted');
        notify(stuck, 'supervisors were stuck: they were terminated and restarted');
        notify(blocked, 'repairs or provisionings were stuck: they were terminated');
        notify(failed, 'supervisors could not be checked');
        notify(unseen, 'agents were not seen for three check intervals');
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
