import type { TenantDatabase } from '../../platform/database/database.js';

/** An agent's times in milliseconds, and its incidents. */
export interface AgentIncidents {
  readonly agentId: string;
  readonly desiredMs: number;
  readonly runningMs: number;
  readonly crashes: number;
  readonly repairs: number;
}

/** An end that was counted as a crash; an agent that only fails its health check has not crashed. */
export const IS_CRASH = `t.to_state = 'degraded' AND t.cause <> 'unhealthy'`;
export const IS_REPAIR = `t.to_state = 'repairing'`;

/**
 * Returns the SQL of the milliseconds of spans, summed as intervals: summing numbers of each takes several
 * times as long.
 */
const msOf = (condition: string) =>
  `coalesce(extract(epoch FROM sum(span) FILTER (WHERE ${condition})) * 1000, 0)::float8`;

/**
 * The states of each agent from `$from` on, by its transitions; before the oldest stored one its state is
 * unknown. A container that Docker refuses to stop runs against its owner's will. Transitions of one
 * millisecond are in the order of the versions at the end of their ids.
 */
const INCIDENTS = `
  SELECT id AS "agentId",
         ${msOf('is_desired')} AS "desiredMs",
         ${msOf("is_desired AND to_state = 'running'")} AS "runningMs",
         count(*) FILTER (WHERE is_new AND is_crash)::integer AS crashes,
         count(*) FILTER (WHERE is_new AND is_repair)::integer AS repairs
    FROM (
      SELECT a.id, t.to_state, t.at >= $from::timestamptz AS is_new, ${IS_CRASH} AS is_crash,
             ${IS_REPAIR} AS is_repair,
             t.to_state <> 'stopped' AND t.cause <> 'stop_refused' AS is_desired,
             greatest(interval '0', lead(t.at, 1, least(a.deleted_at, $now::timestamptz))
                 OVER (PARTITION BY a.id ORDER BY t.at, right(t.id, 12))
               - greatest(t.at, $from::timestamptz)) AS span
        FROM agents a CROSS JOIN LATERAL (
          (SELECT * FROM watchdog_transitions WHERE agent_id = a.id AND at < $from::timestamptz
            ORDER BY at DESC, right(id, 12) DESC LIMIT 1)
          UNION ALL
          (SELECT * FROM watchdog_transitions WHERE agent_id = a.id
              AND at >= $from::timestamptz AND at < $now::timestamptz)) t
       WHERE a.user_id = $userId) spans
   GROUP BY id`;

/** Returns the incidents of a user's agents since a time, for agents with stored transitions. */
export const incidentsOf = (
  tenant: TenantDatabase,
  userId: string,
  { from, now }: { readonly from: Date; readonly now: Date },
): Promise<AgentIncidents[]> =>
  tenant.query<AgentIncidents>(
    INCIDENTS,
    { userId, from: from.toISOString(), now: now.toISOString() },
    { plan: 'fresh' },
  );

/** Returns the percentage of the desired running time in which agents ran; null without any. */
export function availabilityOf(
  agents: readonly Pick<AgentIncidents, 'desiredMs' | 'runningMs'>[],
): number | null {
  const desired = agents.reduce((sum, { desiredMs }) => sum + desiredMs, 0);
  const running = agents.reduce((sum, { runningMs }) => sum + runningMs, 0);
  return desired === 0 ? null : Math.round((running / desired) * 100_000) / 1_000;
}

/** Sums up the incidents of agents. */
export const incidentSums = (agents: readonly Pick<AgentIncidents, 'crashes' | 'repairs'>[]) => ({
  crashes: agents.reduce((sum, { crashes }) => sum + crashes, 0),
  repairs: agents.reduce((sum, { repairs }) => sum + repairs, 0),
});
