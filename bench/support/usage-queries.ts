import type { Database, TenantDatabase } from '../../src/platform/database/database.js';
import { costDashboard } from '../../src/ai/usage/cost-dashboard.js';
import { lastDays, monthToDate, type Period } from '../../src/ai/usage/period.js';
import * as sql from '../../src/ai/usage/report-sql.js';
import { usageByModel, usageDaily, usageSummary } from '../../src/ai/usage/reports.js';
import { agentOf, userOf } from './usage-rows.js';

/** A report, and the same sums computed from the calls themselves. */
export interface UsageQuery {
  readonly name: string;
  ours(): Promise<unknown>;
  bare(): Promise<unknown>;
}

/** Source of a report without the sums of days. */
const CALLS = `
  (SELECT user_id, (created_at AT TIME ZONE 'UTC')::date AS day, coalesce(agent_id, '') AS agent_id,
          provider, model, input_tokens::bigint, output_tokens::bigint, cost_usd, 1 AS calls
     FROM usage_logs
    WHERE created_at >= $from::date::timestamp AT TIME ZONE 'UTC'
      AND created_at < ($to::date + 1)::timestamp AT TIME ZONE 'UTC')`;

/** Rows of one page of a summary. */
const LIMIT = 1_000;

/**
 * Returns every report of spec 4.13 with its defaults, and the long ones over a year, for one user and
 * for all.
 */
export function usageQueries(database: Database): UsageQuery[] {
  const now = new Date();
  const year = lastDays(366, now);
  const user = userOf(1);
  const agentId = agentOf(user, 1);
  const ada = database.asUser(user);
  const all = database.asPlatform();

  const dashboard = (name: string, period: Period): UsageQuery => ({
    name: `dashboard, ${name}`,
    ours: () => costDashboard(ada, period),
    bare: () => bare(ada, sql.costSql, { ...period }),
  });
  const reports = (whose: string, tenant: TenantDatabase, days: string, period: Period) => [
    {
      name: `summary, ${days}, ${whose}`,
      ours: () => usageSummary(tenant, period, { limit: LIMIT }),
      bare: () =>
        bare(tenant, (scope) => sql.summarySql(scope, false), { ...period, limit: LIMIT }),
    },
    {
      name: `by-model, ${days}, ${whose}`,
      ours: () => usageByModel(tenant, period),
      bare: () =>
        bare(tenant, (scope) => sql.byModelSql(scope, false), { ...period, limit: LIMIT }),
    },
    {
      name: `by-agent, ${days}, ${whose}`,
      ours: () => usageByModel(tenant, period, agentId),
      bare: () =>
        bare(tenant, (scope) => sql.byModelSql(scope, true), { ...period, limit: LIMIT, agentId }),
    },
    {
      name: `daily, ${days}, ${whose}`,
      ours: () => usageDaily(tenant, period),
      bare: () => bare(tenant, sql.dailySql, { ...period }),
    },
  ];
  const month = lastDays(30, now);
  return [
    dashboard('7d', lastDays(7, now)),
    dashboard('30d', month),
    dashboard('mtd', monthToDate(now)),
    ...reports('a user', ada, '30 days', month),
    ...reports('a user', ada, 'a year', year),
    ...reports('all users', all, '30 days', month),
    ...reports('all users', all, 'a year', year),
  ];
}

/** Runs the same statement with the same role over all calls, without a time limit. */
function bare(
  tenant: TenantDatabase,
  statement: (scope: sql.Scope) => string,
  bind: Readonly<Record<string, string | number>>,
): Promise<unknown> {
  const { userId } = tenant;
  return tenant.transaction(async (db) => {
    await db.query('SET LOCAL statement_timeout = 0');
    return db.query(statement({ usage: CALLS, ofUser: userId !== undefined }), {
      ...bind,
      ...(userId !== undefined && { userId }),
    });
  });
}
