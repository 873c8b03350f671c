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

/** Whole steps up to and including the one in progress. */
export interface Window {
  readonly from: Date;
  /** Exclusive. */
  readonly to: Date;
  /** Seconds. */
  readonly step: number;
  readonly steps: number;
  /** True if the window begins at a full hour: then sums by hour are exact. */
  readonly isOfHours: boolean;
}

export function windowOf(period: MetricPeriod, now: Date): Window {
  const { step, steps } = PERIODS[period];
  const stepMs = step * 1_000;
  const to = (Math.floor(now.getTime() / stepMs) + 1) * stepMs;
  return {
    from: new Date(to - steps * stepMs),
    to: new Date(to),
    step,
    steps,
    isOfHours: step >= 3_600,
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
