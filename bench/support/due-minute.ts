/** Milliseconds allowed for the creation of each schedule, and for all schedules to settle. */
const EACH_MS = 60;
const SETTLE_MS = 10_000;

/**
 * Milliseconds that a round may take in addition to each schedule's share; includes the wait for the next
 * minute.
 */
const ROUND_MS = 180_000;
const EACH_RUN_MS = 250;

/** Returns the milliseconds in which so many schedules have run in any case. */
export const roundTimeoutMs = (schedules: number): number => ROUND_MS + schedules * EACH_RUN_MS;

/** Returns a minute that begins when so many schedules can be made, with its daily cron expression in UTC. */
export function dueMinute(schedules: number): { readonly at: number; readonly cron: string } {
  const earliest = Date.now() + schedules * EACH_MS + SETTLE_MS;
  const at = Math.ceil(earliest / 60_000) * 60_000;
  const time = new Date(at);
  return { at, cron: `${time.getUTCMinutes()} ${time.getUTCHours()} * * *` };
}
