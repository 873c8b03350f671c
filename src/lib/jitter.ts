/** The share of a period by which it may come sooner. */
const SHARE = 0.1;

/**
 * A period, or up to a tenth less of it, in whole milliseconds: what began at the same moment, as
 * after a restart, does not come at the same moment for ever.
 */
export function jittered(ms: number): number {
  return Math.round(ms * (1 - SHARE * Math.random()));
}
