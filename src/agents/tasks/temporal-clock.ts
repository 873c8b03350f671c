import { wallTime, type WallTime } from './zoned-time.js';

/** The times of one cron expression. */
export interface CronTimes {
  /** Hours and minutes of each matching day, ascending. */
  readonly hours: readonly number[];
  readonly minutes: readonly number[];
  /** Returns the beginning of the first matching day that does not begin before a time; null without one. */
  readonly dayFrom: (day: WallTime) => WallTime | null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * Returns the first moment after `now` at which Temporal starts a run. Around a change of the clocks this repeats
 * Temporal's search with its surprises, of which `test/temporal/task-times.test.ts` has examples. A skipped time has
 * no run; a repeated one has two west of Greenwich, and one elsewhere.
 */
export function nextAsTemporal(
  { dayFrom, hours, minutes }: CronTimes,
  zone: string,
  { now, until }: { readonly now: number; readonly until: number },
): number | undefined {
  const begin = wallTime(zone, now);
  const isRepeated = hourOf(wallTime(zone, now - HOUR_MS)) === hourOf(begin);
  for (let day = dayFrom(startOfDay(begin)); day !== null && day <= until + DAY_MS;) {
    for (const hour of hours) {
      const slot = day + hour * HOUR_MS;
      if (slot + HOUR_MS <= begin) continue;
      const isFirst = slot <= begin;
      const found = inHour(slot, isFirst && isRepeated, isFirst ? begin : undefined);
      if (found !== undefined) return found;
    }
    day = dayFrom(day + DAY_MS);
  }
  return undefined;

  /** Searches an hour of the clock, and then its second copy. */
  function inHour(
    slot: WallTime,
    isSecondCopy: boolean,
    after: WallTime | undefined,
  ): number | undefined {
    const shift = isSecondCopy ? HOUR_MS : 0;
    for (const minute of minutes) {
      const wall = slot + minute * MINUTE_MS;
      if (after !== undefined && wall <= after) continue;
      const moment = momentAsGo(zone, wall);
      if (hourOf(wallTime(zone, moment)) !== hourOf(slot)) return undefined;
      return moment + shift;
    }
    const isLong = momentAsGo(zone, slot + HOUR_MS) - momentAsGo(zone, slot) > HOUR_MS;
    return isSecondCopy || !isLong ? undefined : inHour(slot, true, undefined);
  }
}

/** Returns the moment of a time of the clock, as Go chooses among two, or beside a time that is skipped. */
function momentAsGo(zone: string, wall: WallTime): number {
  const offset = offsetAt(zone, wall);
  const moment = wall - offset;
  return wall - offsetAt(zone, moment);
}

const offsetAt = (zone: string, moment: number): number => wallTime(zone, moment) - moment;

const startOfDay = (wall: WallTime): WallTime => Math.floor(wall / DAY_MS) * DAY_MS;

const hourOf = (wall: WallTime): number => Math.floor(wall / HOUR_MS) % 24;
