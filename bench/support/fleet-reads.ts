import { createHash } from 'node:crypto';
import type pg from 'pg';
import { listBookings } from '../../src/fleet/bookings.js';
import { colonyChecks } from '../../src/fleet/colony-diagnostics.js';
import { colonyTree } from '../../src/fleet/colony-tree.js';
import { fleetCosts } from '../../src/fleet/fleet-costs.js';
import { fleetGraph } from '../../src/fleet/fleet-graph.js';
import { listTraces } from '../../src/fleet/traces.js';
import type { Database } from '../../src/platform/database/database.js';
import type { SecretBox } from '../../src/platform/secrets/secret-box.js';
import { READER } from './fleet-rows.js';

interface Read {
  readonly name: string;
  readonly ours: () => Promise<unknown>;
  /** The same rows by plain statements, without policies and bounds. */
  readonly bare: readonly string[];
}

const PAGE = 50;

const GRAPH = [
  `SELECT id, name, status, parent_agent_id FROM agents WHERE user_id = $1 ORDER BY created_at, id`,
  `SELECT id, name, status FROM swarms WHERE user_id = $1 ORDER BY created_at DESC`,
  `SELECT swarm_id, agent_id FROM swarm_members WHERE user_id = $1`,
  `SELECT from_agent, to_agent, count(*) FROM bus_messages
    WHERE (from_user = $1 OR (to_user = $1 AND from_user <> to_user)) AND created_at > now() - interval '30 days' GROUP BY 1, 2`,
  `SELECT s.agent_id, p.address, count(*) FROM royalty_splits s JOIN royalty_payouts p ON p.split_id = s.id
    WHERE s.user_id = $1 GROUP BY 1, 2`,
];

const TRACES = [
  `SELECT * FROM (
     (SELECT id, kind, agent_id, status, requested_at AS at, finished_at, error FROM operations
       WHERE user_id = $1 ORDER BY requested_at DESC, id DESC LIMIT ${PAGE})
     UNION ALL
     (SELECT r.id, t.name, r.agent_id, r.status, r.started_at, r.finished_at, r.error
        FROM scheduled_task_runs r JOIN scheduled_tasks t ON t.id = r.task_id
       WHERE r.user_id = $1 ORDER BY r.started_at DESC, r.id DESC LIMIT ${PAGE})
     UNION ALL
     (SELECT id, name, coordinator_id, status, created_at, finished_at, error FROM swarms
       WHERE user_id = $1 ORDER BY created_at DESC, id DESC LIMIT ${PAGE})) work
    ORDER BY at DESC, id DESC LIMIT ${PAGE}`,
];

const costs = (days: number) => [
  `SELECT day, agent_id, model, sum(input_tokens + output_tokens), sum(cost_usd), sum(calls)
     FROM usage_daily WHERE user_id = $1 AND day > (now() AT TIME ZONE 'UTC')::date - ${days}
    GROUP BY GROUPING SETS ((), (day), (agent_id, model), (model))`,
  `SELECT id, name, desired FROM agents WHERE user_id = $1`,
  `SELECT day, sum(cost_usd) FROM usage_daily
    WHERE user_id = $1 AND day > (now() AT TIME ZONE 'UTC')::date - 31 GROUP BY day`,
];

const TREE = [
  `SELECT a.id, a.name, a.generation, c.specialization, a.status, a.created_at, a.parent_agent_id
     FROM agents a LEFT JOIN clones c ON c.id = a.id WHERE a.user_id = $1 ORDER BY a.created_at`,
];

const CHECKS = [
  `SELECT a.id, a.status, a.watchdog, a.verified, a.observed_at, a.generation, p.generation, p.desired
     FROM agents a LEFT JOIN agents p ON p.id = a.parent_agent_id WHERE a.user_id = $1`,
];

const BOOKINGS = [
  `SELECT * FROM bus_threads WHERE user_a = $1 OR user_b = $1 ORDER BY created_at DESC LIMIT ${PAGE}`,
];

/** Returns the views of the fleet and the colony that read the database. */
export function fleetReads(database: Database, secrets: SecretBox): readonly Read[] {
  const tenant = database.asUser(READER);
  const now = new Date();
  const limit = PAGE;
  return [
    { name: 'graph', ours: () => fleetGraph(tenant, READER), bare: GRAPH },
    { name: 'traces', ours: () => listTraces(tenant, READER, { limit }), bare: TRACES },
    { name: 'costs, 7d', ours: () => fleetCosts(tenant, '7d', now), bare: costs(7) },
    { name: 'costs, 30d', ours: () => fleetCosts(tenant, '30d', now), bare: costs(30) },
    {
      name: 'bookings',
      ours: () => listBookings(tenant, secrets, READER, { limit }),
      bare: BOOKINGS,
    },
    { name: 'colony, tree', ours: () => colonyTree(tenant, READER), bare: TREE },
    { name: 'colony, diagnostics', ours: () => colonyChecks(tenant, READER), bare: CHECKS },
  ];
}

/** Runs plain statements for the reader, one after the other, on a connection of its own. */
export async function runBare(client: pg.Client, statements: readonly string[]): Promise<void> {
  for (const text of statements) {
    await client.query({
      name: createHash('md5').update(text).digest('hex'),
      text,
      values: [READER],
    });
  }
}
