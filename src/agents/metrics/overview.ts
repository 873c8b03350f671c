import type { TenantDatabase } from '../../platform/database/database.js';
import { agentCounts, type AgentCounts } from './agent-counts.js';
import { allOf, chatFigures } from './chat-figures.js';
import { IS_CRASH, IS_REPAIR } from './incidents.js';
import type { UsageFigures } from './summary.js';
import { lastDaySql } from './usage-sql.js';

const DAY_MS = 86_400_000;

/** Milliseconds for which a sample is the present use: two passes and their duration. */
const PRESENT_MS = 150_000;

/** Sums over running agents; null if none was measured. */
interface Resources {
  readonly cpuPercent: number | null;
  readonly memoryBytes: number | null;
  readonly memoryLimitBytes: number | null;
}

export interface MetricOverview {
  readonly agents: AgentCounts;
  readonly usage24h: UsageFigures;
  readonly chat24h: {
    readonly turns: number;
    readonly failed: number;
    readonly p50Ms: number | null;
    readonly p95Ms: number | null;
  };
  readonly incidents24h: { readonly crashes: number; readonly repairs: number };
  readonly resources: Resources;
}

const incidentsSql = (ofUser: boolean) => `
  SELECT count(*) FILTER (WHERE ${IS_CRASH})::integer AS crashes,
         count(*) FILTER (WHERE ${IS_REPAIR})::integer AS repairs
    FROM agents a JOIN watchdog_transitions t ON t.agent_id = a.id AND t.at >= $from::timestamptz
   ${ofUser ? 'WHERE a.user_id = $userId' : ''}`;

const resourcesSql = (ofUser: boolean) => `
  SELECT round(sum(s.cpu_percent)::numeric, 3)::float8 AS "cpuPercent",
         sum(s.memory_bytes)::float8 AS "memoryBytes",
         sum(s.memory_limit_bytes)::float8 AS "memoryLimitBytes"
    FROM agents a CROSS JOIN LATERAL (
      SELECT * FROM agent_samples WHERE agent_id = a.id AND at >= $since::timestamptz
       ORDER BY at DESC LIMIT 1) s
   WHERE a.status = 'active' AND a.desired <> 'deleted' ${ofUser ? 'AND a.user_id = $userId' : ''}`;

/** Returns the present state and the last 24 hours: the user's, or all users' for the platform. */
export async function metricOverview(tenant: TenantDatabase, now: Date): Promise<MetricOverview> {
  const { userId } = tenant;
  const ofUser = userId !== undefined;
  const from = new Date(now.getTime() - DAY_MS);
  const single = async <Row extends object>(
    sql: string,
    values: Readonly<Record<string, string>>,
  ): Promise<Row> => {
    const bound = { ...values, ...(ofUser && { userId }) };
    const [row] = await tenant.query<Row>(sql, bound, { plan: 'fresh' });
    if (!row) throw new TypeError('a sum over no rows must still return a row');
    return row;
  };
  const lastDay = { from: from.toISOString() };
  const present = { since: new Date(now.getTime() - PRESENT_MS).toISOString() };
  const [agents, usage24h, chats, incidents24h, resources] = await Promise.all([
    agentCounts(tenant),
    single<UsageFigures>(lastDaySql(ofUser), lastDay),
    chatFigures(tenant, from, { ofEach: false }),
    single<MetricOverview['incidents24h']>(incidentsSql(ofUser), lastDay),
    single<Resources>(resourcesSql(ofUser), present),
  ]);
  const { turns, failed, p50Ms, p95Ms } = allOf(chats);
  return { agents, usage24h, chat24h: { turns, failed, p50Ms, p95Ms }, incidents24h, resources };
}
