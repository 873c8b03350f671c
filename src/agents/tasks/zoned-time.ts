import { setBounded } from '../../lib/bounded-map.js';

/** A time zone's clock as Unix milliseconds: the time that a clock in UTC shows at the same reading. */
export type WallTime = number;

const DAY_MS = 24 * 60 * 60_000;

/** Names as the IANA database has them; `Intl` also accepts offsets, and any case. */
const ZONE_NAME = /^[A-Z][A-Za-z0-9_+-]*(?:\/[A-Z][A-Za-z0-9_+-]*){0,2}$/;
const MAX_ZONE_NAME = 64;

const MAX_CLOCKS = 200;
const clocks = new Map<string, Intl.DateTimeFormat>();

export function isTimeZone(name: string): boolean {
  if (name.length > MAX_ZONE_NAME || !ZONE_NAME.test(name)) return false;
  try {
    const { timeZone } = clockOf(name).resolvedOptions();
    // A name in another case is no file of the scheduler's database.
    return timeZone === name || timeZone.toLowerCase() !== name.toLowerCase();
  } catch {
    return false;
  }
}

/** Returns what the clocks of a zone show at a moment, to the second. */
export function wallTime(zone: string, moment: number): WallTime {
  const seconds = Math.floor(moment / 1_000) * 1_000;
  const { day, hour, minute, month, second, year } = Object.fromEntries(
    clockOf(zone)
      .formatToParts(seconds)
      .map(({ type, value }) => [type, Number(value)]),
  ) as Record<'day' | 'hour' | 'minute' | 'month' | 'second' | 'year', number>; // as the format asks
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/** Returns the moments at which the clocks of a zone show a time: none, one or two, in order. */
export function momentsOf(zone: string, wall: WallTime): readonly number[] {
  const offsets = [wall - DAY_MS, wall + DAY_MS].map((near) => wallTime(zone, near) - near);
  return [...new Set(offsets)]
    .map((offset) => wall - offset)
    .filter((moment) => wallTime(zone, moment) === wall)
    .sort((one, other) => one - other);
}

function clockOf(zone: string): Intl.DateTimeFormat {
  const known = clocks.get(zone);
  if (known) return known;
  const clock = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  setBounded(clocks, zone, clock, MAX_CLOCKS);
  return clock;
}
