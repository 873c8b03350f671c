/** Periods of reports, with the seconds of a step and the steps of the period. */
const PERIODS = {
  '1h': { step: 60, steps: 60 },
  '24h': { step: 300, steps: 288 },
  '7d': { step: 3_600, steps: 168 },
  '30d': { step: 14_400, steps: 180 },
  '90d': { step: 86_400, steps: 90 },
} as const;

export type MetricPeriod = keyof typeof PERIODS;

// Safe cast: these are the keys of the constant above.
export const METRIC_PERIODS = Object.keys(PERIODS) as [MetricPeriod, ...MetricPeriod[]];

/** Seconds of a sample's own step: one a minute. */
export const SAMPLE_STEP = 60;

/** Steps in seconds, of which the sums of samples are stored. */
export const SUMMED_STEPS: readonly number[] = Object.values(PERIODS)
  .map(({ step }) => step)
  .filter((step) => step !== SAMPLE_STEP);

/** Stored sums of usage that are exact in a window; single calls if its steps are shorter than hours. */
export type UsageUnit = 'calls' | 'hours' | 'days';

/** Whole steps up to and including the one in progress. */
export interface Window {
  readonly from: Date;
  /** Exclusive. */
  readonly to: Date;
  /** Seconds. */
  readonly step: number;
  readonly steps: number;
  readonly unit: UsageUnit;
}

export const windowOf = (period: MetricPeriod, now: Date): Window =>
  windowOfSteps(PERIODS[period], now);

/** Returns the window of the last days (UTC), including today. */
export const windowOfDays = (days: number, now: Date): Window =>
  windowOfSteps({ step: 86_400, steps: days }, now);

function windowOfSteps({ step, steps }: Pick<Window, 'step' | 'steps'>, now: Date): Window {
  const stepMs = step * 1_000;
  const to = (Math.floor(now.getTime() / stepMs) + 1) * stepMs;
  return {
    from: new Date(to - steps * stepMs),
    to: new Date(to),
    step,
    steps,
    unit: step < 3_600 ? 'calls' : step < 86_400 ? 'hours' : 'days',
  };
}

/** Returns the beginning of each step. */
export const stepsOf = ({ from, step, steps }: Window): Date[] =>
  Array.from({ length: steps }, (_, n) => new Date(from.getTime() + n * step * 1_000));

/** Returns the window's bounds as values of a statement. */
export const boundsOf = ({ from, to }: Window) => ({
  from: from.toISOString(),
  to: to.toISOString(),
});
