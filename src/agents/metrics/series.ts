import type { TenantDatabase } from '../../platform/database/database.js';
import { usageRows, USAGE_SUMS } from './usage-sql.js';
import { boundsOf, SAMPLE_STEP, stepsOf, type UsageUnit, type Window } from './window.js';

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

/** Samples of a minute, as sums of themselves. */
const SINGLE = `
  SELECT at, 1 AS samples, cpu_percent, memory_bytes::float8 AS memory_bytes,
         network_in::float8 AS network_in, network_out::float8 AS network_out
    FROM agent_samples WHERE agent_id = a.id`;

const SUMMED = `
  SELECT at, samples, cpu_percent, memory_bytes, network_in, network_out
    FROM agent_sample_sums WHERE agent_id = a.id AND step = $step`;

/** Returns the measurements by step: the average of each agent, and then the sum over agents. */
const measuredSql = (step: number, ofAgent: boolean) => `
  SELECT extract(epoch FROM s.at)::float8 AS at, sum(s.cpu_percent / s.samples) AS cpu,
         sum(s.memory_bytes / s.samples) AS memory, sum(s.network_in) AS network_in,
         sum(s.network_out) AS network_out
    FROM agents a CROSS JOIN LATERAL (
      ${step === SAMPLE_STEP ? SINGLE : SUMMED}
         AND at >= $from::timestamptz AND at < $to::timestamptz OFFSET 0) s
   WHERE a.user_id = $userId${ofAgent ? ' AND a.id = $agentId' : ''}
   GROUP BY s.at`;

const usageSql = (unit: UsageUnit, ofAgent: boolean) => `
  SELECT extract(epoch FROM step)::float8 AS at, ${USAGE_SUMS.replace('"costUsd"', 'cost')}
    FROM (
      SELECT u.*, date_bin(make_interval(secs => $step), u.at, 'epoch'::timestamptz) AS step
        FROM ${usageRows(unit)} u${ofAgent ? ' WHERE u.agent_id = $agentId' : ''}) stepped
   GROUP BY step`;

/** Returns the series of a user's agent, or the sums over all of them. */
export async function metricSeries(
  tenant: TenantDatabase,
  userId: string,
  window: Window,
  agentId?: string,
): Promise<Series[]> {
  const { step, unit } = window;
  const ofAgent = agentId !== undefined;
  const bounds = { ...boundsOf(window), userId, ...(ofAgent && { agentId }) };
  const query = async (sql: string, values: Readonly<Record<string, string | number>>) =>
    byStep(await tenant.query<AtStep & Values>(sql, values, { plan: 'fresh' }));
  const [measured, usage] = await Promise.all([
    query(measuredSql(step, ofAgent), step === SAMPLE_STEP ? bounds : { ...bounds, step }),
    query(usageSql(unit, ofAgent), { ...bounds, step }),
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
