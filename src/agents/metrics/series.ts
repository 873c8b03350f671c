import type { TenantDatabase } from '../../platform/database/database.js';
import { usageRows, USAGE_SUMS } from './usage-sql.js';
import { boundsOf, stepsOf, type Window } from './window.js';

/** Metrics with their units: CPU in percent of one core, network in bytes a step. */
export const METRICS = {
  cpu: 'percent',
  memory: 'bytes',
  network_in: 'bytes',
  network_out: 'bytes',
  calls: 'calls',
  tokens: 'tokens',
  cost: 'USD',
} as const;

export type Metric = keyof typeof METRICS;

// Safe cast: these are the keys of the constant above.
export const METRIC_NAMES = Object.keys(METRICS) as [Metric, ...Metric[]];

export interface Series {
  /** Null for the sum over all agents. */
  readonly agentId: string | null;
  readonly metric: Metric;
  readonly unit: (typeof METRICS)[Metric];
  /** The beginning of each step, and the value; null without a measurement. */
  readonly points: (readonly [Date, number | null])[];
}

type Values = Readonly<Partial<Record<Metric, number>>>;

/** Unix seconds of the beginning of a step. */
interface AtStep {
  readonly at: number;
}

const stepOf = (time: string) => `floor(extract(epoch FROM ${time}) / $step)::bigint * $step`;

const SINGLE = {
  table: 'agent_samples',
  time: 'at',
  samples: 'count(*)',
};

const HOURLY = {
  table: 'agent_samples_hourly',
  time: 'hour',
  samples: 'sum(s.samples)',
};

/** Returns the measurements by step: the average of each agent, and then the sum over agents. */
const measuredSql = ({ table, time, samples }: typeof SINGLE, ofAgent: boolean) => `
  SELECT at, sum(cpu)::float8 AS cpu, sum(memory)::float8 AS memory,
         sum(network_in)::float8 AS network_in, sum(network_out)::float8 AS network_out
    FROM (
      SELECT a.id, ${stepOf(`s.${time}`)}::float8 AS at, sum(s.cpu_percent) / ${samples} AS cpu,
             sum(s.memory_bytes) / ${samples} AS memory, sum(s.network_in) AS network_in,
             sum(s.network_out) AS network_out
        FROM agents a CROSS JOIN LATERAL (
          SELECT * FROM ${table} WHERE agent_id = a.id
             AND ${time} >= $from::timestamptz AND ${time} < $to::timestamptz OFFSET 0) s
       WHERE a.user_id = $userId${ofAgent ? ' AND a.id = $agentId' : ''}
       GROUP BY 1, 2) of_agent
   GROUP BY at`;

const usageSql = (ofHours: boolean, ofAgent: boolean) => `
  SELECT ${stepOf('u.at')}::float8 AS at, ${USAGE_SUMS.replace('"costUsd"', 'cost')}
    FROM ${usageRows(ofHours)} u${ofAgent ? ' WHERE u.agent_id = $agentId' : ''}
   GROUP BY 1`;

/** Returns the series of a user's agent, or the sums over all of them. */
export async function metricSeries(
  tenant: TenantDatabase,
  userId: string,
  window: Window,
  agentId?: string,
): Promise<Series[]> {
  const { isOfHours, step } = window;
  const ofAgent = agentId !== undefined;
  const values = { ...boundsOf(window), userId, step, ...(ofAgent && { agentId }) };
  const query = (sql: string) =>
    tenant.query<AtStep & Values>(sql, values, { plan: 'fresh' }).then(byStep);
  const [measured, usage] = await Promise.all([
    query(measuredSql(isOfHours ? HOURLY : SINGLE, ofAgent)),
    query(usageSql(isOfHours, ofAgent)),
  ]);
  const steps = stepsOf(window);
  return METRIC_NAMES.map((metric) => ({
    agentId: agentId ?? null,
    metric,
    unit: METRICS[metric],
    points: steps.map((at) => {
      const seconds = at.getTime() / 1_000;
      const value = measured.get(seconds)?.[metric] ?? usage.get(seconds)?.[metric];
      return [at, value === undefined ? emptyOf(metric) : rounded(metric, value)];
    }),
  }));
}

const byStep = (rows: readonly (AtStep & Values)[]): ReadonlyMap<number, Values> =>
  new Map(rows.map((row) => [row.at, row]));

/** Every call is counted, so a step without calls has none; a step without samples was not measured. */
const emptyOf = (metric: Metric): number | null =>
  metric === 'calls' || metric === 'tokens' || metric === 'cost' ? 0 : null;

const rounded = (metric: Metric, value: number): number => {
  if (metric === 'cost') return Math.round(value * 1e6) / 1e6;
  return metric === 'cpu' ? Math.round(value * 1e3) / 1e3 : Math.round(value);
};
