/** The largest share of a period that jitter removes. */
const SHARE = 0.1;

/** Returns the period less up to a tenth, so that timers started together drift apart. */
export function jittered(ms: number): number {
  return Math.round(ms * (1 - SHARE * Math.random()));
}
