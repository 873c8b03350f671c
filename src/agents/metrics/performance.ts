import type { TenantDatabase } from '../../platform/database/database.js';
import { allOf, chatFigures, type ChatFigures } from './chat-figures.js';
import { availabilityOf, incidentsOf } from './incidents.js';
import { toolsSql } from './usage-sql.js';
import { boundsOf, type Window } from './window.js';

/** Maximum number of agents that a report names, newest first; its sums cover all. */
const MAX_NAMED = 1_000;

interface AgentPerformance {
  readonly agentId: string;
  readonly name: string;
  readonly availability: number | null;
  readonly turns: number;
  readonly failed: number;
  readonly p95Ms: number | null;
  readonly crashes: number;
  readonly repairs: number;
}

interface ToolFigures {
  readonly calls: number;
  readonly successes: number;
  readonly avgMs: number | null;
}

interface ProvisioningFigures {
  readonly count: number;
  readonly failed: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface Performance {
  /** Percent of the desired running time; null without any. */
  readonly availability: number | null;
  readonly chat: ChatFigures;
  readonly tools: ToolFigures;
  readonly provisioning: ProvisioningFigures;
  readonly agents: readonly AgentPerformance[];
}

const took = (share: number) =>
  `round(percentile_cont(${share}) WITHIN GROUP (
     ORDER BY extract(epoch FROM finished_at - requested_at) * 1000)
     FILTER (WHERE status = 'succeeded'))::float8`;

/** Creations that were cancelled, as by a removal, neither succeeded nor failed. */
const PROVISIONING = `
  SELECT count(*)::integer AS count, count(*) FILTER (WHERE status = 'failed')::integer AS failed,
         ${took(0.5)} AS "p50Ms", ${took(0.95)} AS "p95Ms"
    FROM operations
   WHERE user_id = $userId AND kind = 'provision' AND status IN ('succeeded', 'failed')
     AND finished_at >= $from::timestamptz AND finished_at < $to::timestamptz`;

const NAMES = `
  SELECT id, name FROM agents WHERE user_id = $userId AND desired <> 'deleted'
   ORDER BY created_at DESC, id DESC LIMIT ${MAX_NAMED}`;

/** Returns how well a user's agents worked in a period, removed ones included; names the present ones. */
export async function performanceOf(
  tenant: TenantDatabase,
  userId: string,
  window: Window,
  now: Date,
): Promise<Performance> {
  const values = { ...boundsOf(window), userId };
  const single = <Row extends object>(sql: string): Promise<Row> =>
    tenant.query<Row>(sql, values, { plan: 'fresh' }).then(only);
  const [incidents, chats, tools, provisioning, names] = await Promise.all([
    incidentsOf(tenant, userId, { from: window.from, now }),
    chatFigures(tenant, window.from, { ofEach: true }),
    single<ToolFigures>(toolsSql(window.unit)),
    single<ProvisioningFigures>(PROVISIONING),
    tenant.query<{ id: string; name: string }>(NAMES, { userId }),
  ]);
  const incidentsById = new Map(incidents.map((each) => [each.agentId, each]));
  const chatsById = new Map(chats.map((each) => [each.agentId, each]));
  return {
    availability: availabilityOf(incidents),
    chat: allOf(chats),
    tools,
    provisioning,
    agents: names.map(({ id, name }) => {
      const incident = incidentsById.get(id);
      const chat = chatsById.get(id);
      return {
        agentId: id,
        name,
        availability: incident ? availabilityOf([incident]) : null,
        turns: chat?.turns ?? 0,
        failed: chat?.failed ?? 0,
        p95Ms: chat?.p95Ms ?? null,
        crashes: incident?.crashes ?? 0,
        repairs: incident?.repairs ?? 0,
      };
    }),
  };
}

function only<Row>([row]: readonly Row[]): Row {
  if (row === undefined) throw new TypeError('a sum over no rows must still return a row');
  return row;
}
