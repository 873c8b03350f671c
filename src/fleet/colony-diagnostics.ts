import type { TenantDatabase } from '../platform/database/database.js';

/** Maximum number of agents that a check names; its count is of all. */
const MAX_NAMED = 500;

const STALE_AFTER = '5 minutes';

/** Conditions of an agent `a`, with its parent `p`, that a check finds. */
const CHECKS = {
  /** The agent that the agent was cloned from is removed. */
  orphans: `a.parent_agent_id IS NOT NULL AND (p.id IS NULL OR p.desired = 'deleted')`,
  failed: `a.status = 'error'`,
  crash_loop: `a.watchdog ->> 'state' = 'crash_loop'`,
  unverified: 'NOT a.verified',
  /** The agent should run, and was not observed lately. */
  stale: `a.desired = 'running'
    AND coalesce(a.observed_at, a.created_at) < now() - interval '${STALE_AFTER}'`,
  lineage: 'p.id IS NOT NULL AND a.generation <> p.generation + 1',
} as const;

export type CheckName = keyof typeof CHECKS;

// Safe cast: these are the keys of the constant above.
export const CHECK_NAMES = Object.keys(CHECKS) as [CheckName, ...CheckName[]];

export interface ColonyCheck {
  readonly name: CheckName;
  readonly ok: boolean;
  readonly count: number;
  /** Ids of the agents found, oldest first. */
  readonly agents: readonly string[];
}

const SQL = CHECK_NAMES.map(
  (name) => `count(*) FILTER (WHERE ${name})::int AS "${name}Count",
    (array_agg(id ORDER BY created_at, id) FILTER (WHERE ${name}))[1:${MAX_NAMED}] AS ${name}`,
).join(',\n');

/** Checks a user's agents by their stored state. */
export async function colonyChecks(
  tenant: TenantDatabase,
  userId: string,
): Promise<readonly ColonyCheck[]> {
  const conditions = CHECK_NAMES.map((name) => `(${CHECKS[name]}) AS ${name}`).join(', ');
  const [found = {}] = await tenant.query<Readonly<Record<string, unknown>>>(
    `SELECT ${SQL}
       FROM (SELECT a.id, a.created_at, ${conditions}
               FROM agents a LEFT JOIN agents p ON p.id = a.parent_agent_id
              WHERE a.user_id = $userId AND a.desired <> 'deleted') checked`,
    { userId },
  );
  return CHECK_NAMES.map((name) => {
    const agents = found[name];
    const count = Number(found[`${name}Count`]);
    return {
      name,
      ok: count === 0,
      count,
      agents: Array.isArray(agents) ? agents.map(String) : [],
    };
  });
}
