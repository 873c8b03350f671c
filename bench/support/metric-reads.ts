import type pg from 'pg';
import { metricOverview } from '../../src/agents/metrics/overview.js';
import { performanceOf } from '../../src/agents/metrics/performance.js';
import { metricSeries } from '../../src/agents/metrics/series.js';
import { metricSummary } from '../../src/agents/metrics/summary.js';
import { boundsOf, windowOf, type MetricPeriod } from '../../src/agents/metrics/window.js';
import type { Database } from '../../src/platform/database/database.js';
import { READER } from './metric-rows.js';

interface Read {
  readonly name: string;
  readonly ours: () => Promise<unknown>;
  /** The same figures by one plain statement over all samples; undefined where no sample is read. */
  readonly bare?: () => Promise<unknown>;
}

const BARE_SERIES = `
  SELECT floor(extract(epoch FROM at) / $4), sum(cpu_percent), sum(memory_bytes), sum(network_in),
         sum(network_out)
    FROM agent_samples WHERE user_id = $1 AND at >= $2 AND at < $3 GROUP BY 1`;

const BARE_RESOURCES = `
  SELECT sum(cpu_percent), sum(memory_bytes), sum(memory_limit_bytes)
    FROM (SELECT DISTINCT ON (agent_id) * FROM agent_samples WHERE user_id = $1
           ORDER BY agent_id, at DESC) s`;

/** Returns the reads of the endpoints, the platform's included. */
export function metricReads(database: Database, owner: pg.Client): readonly Read[] {
  const tenant = database.asUser(READER);
  const now = new Date();
  const series = (period: MetricPeriod): Read => {
    const window = windowOf(period, now);
    const { from, to } = boundsOf(window);
    return {
      name: `historical, ${period}`,
      ours: () => metricSeries(tenant, READER, window),
      bare: () => owner.query(BARE_SERIES, [READER, from, to, window.step]),
    };
  };
  const bare = () => owner.query(BARE_RESOURCES, [READER]);
  return [
    { name: 'metrics', ours: () => metricOverview(tenant, now), bare },
    { name: 'metrics of the platform', ours: () => metricOverview(database.asPlatform(), now) },
    ...(['1h', '24h', '7d', '30d', '90d'] as const).map(series),
    ...(['24h', '30d'] as const).map((period) => ({
      name: `performance, ${period}`,
      ours: () => performanceOf(tenant, READER, windowOf(period, now), now),
    })),
    { name: 'summary', ours: () => metricSummary(tenant, READER, now) },
  ];
}
