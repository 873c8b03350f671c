import { Cron } from 'croner';
import { BadRequestError } from '../../lib/errors.js';
import { FREQUENCY_FORMAT, frequencyMs, isFrequency } from '../heartbeat/frequency.js';
import { nextAsTemporal } from './temporal-clock.js';
import { momentsOf } from './zoned-time.js';

/** The times of a task. */
export type TaskSchedule =
  | { readonly kind: 'interval'; readonly everyMs: number }
  | {
      readonly kind: 'cron';
      /** Cron expressions whose times are all due; in each one, both fields of days have to match. */
      readonly expressions: readonly string[];
    }
  | { readonly kind: 'once'; readonly at: number };

/** The fields of a task on which its times depend. */
export interface TaskTimes {
  readonly schedule: string;
  readonly timezone: string;
  /** Unix milliseconds from which an interval is counted. */
  readonly setAt: Date;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const SHORTEST_MS = 5 * MINUTE_MS;

/** Time from now within which a cron expression must have a run, and an ISO time must be. */
const CRON_AHEAD_MS = (4 * 365 + 1) * DAY_MS;
const ONCE_AHEAD_MS = 366 * DAY_MS;

/** The part of cron's syntax that croner and Temporal interpret in the same way. */
const CRON_ITEM = String.raw`(?:\*(?:\/\d{1,2})?|(?:\d{1,2}|[A-Za-z]{3})(?:-(?:\d{1,2}|[A-Za-z]{3})(?:\/\d{1,2})?)?)`;
const CRON_FIELD = `${CRON_ITEM}(?:,${CRON_ITEM}){0,59}`;
const CRON = new RegExp(`^${CRON_FIELD}(?: ${CRON_FIELD}){4}$`);

const ISO =
  /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(?::(\d{2})(?:\.\d{1,3})?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$/;

export const SCHEDULE_FORMAT =
  'a cron expression of five fields, an interval (' +
  `${FREQUENCY_FORMAT}) or an ISO 8601 time (once)`;

/** Reads a schedule. @throws BadRequestError for a text that is none, or a time that its zone does not have */
export function parseSchedule(text: string, timezone: string): TaskSchedule {
  if (isFrequency(text)) return { kind: 'interval', everyMs: frequencyMs(text) };
  const iso = ISO.exec(text);
  if (iso) return { kind: 'once', at: momentOf(iso, timezone) };
  if (!CRON.test(text)) throw refused(`must be ${SCHEDULE_FORMAT}`);
  return { kind: 'cron', expressions: expressionsOf(text) };
}

/** Returns the times of a stored task, whose one time is stored as it was understood. */
export const timesOf = ({
  onceAt,
  schedule,
  timezone,
}: Pick<TaskTimes, 'schedule' | 'timezone'> & { readonly onceAt: Date | null }): TaskSchedule =>
  onceAt === null ? parseSchedule(schedule, timezone) : { kind: 'once', at: onceAt.getTime() };

/** Refuses times that are too close together, past or too far ahead. @throws BadRequestError */
export function requireUsable(schedule: TaskSchedule, timezone: string, now: number): void {
  switch (schedule.kind) {
    case 'interval':
      return;
    case 'once':
      if (schedule.at <= now) throw refused('is a time in the past');
      if (schedule.at > now + ONCE_AHEAD_MS) throw refused('is more than a year ahead');
      return;
    case 'cron':
      requireDistance(schedule.expressions, now);
      const next = nextTime(schedule, { timezone, setAt: new Date(now) }, now);
      if (next === null || next > now + CRON_AHEAD_MS) throw refused('has no run in four years');
  }
}

/** Returns the first time after `now` at which Temporal starts a run; null if there is none. */
export function nextTime(
  schedule: TaskSchedule,
  { setAt, timezone }: Omit<TaskTimes, 'schedule'>,
  now: number,
): number | null {
  switch (schedule.kind) {
    case 'once':
      return schedule.at > now ? schedule.at : null;
    case 'interval': {
      const { everyMs } = schedule;
      const from = Math.floor(setAt.getTime() / 1_000) * 1_000;
      return from + (Math.floor((now - from) / everyMs) + 1) * everyMs;
    }
    case 'cron': {
      const next = schedule.expressions.flatMap((each) => nextOf(each, timezone, now) ?? []);
      return next.length === 0 ? null : Math.min(...next);
    }
  }
}

/** Returns the next time of an expression; undefined if there is none in the time that is looked ahead. */
function nextOf(expression: string, zone: string, now: number): number | undefined {
  const days = inUtc(`0 0 ${daysOf(expression)}`);
  const times = {
    ...clockOf(expression),
    dayFrom: (day: number) => days.nextRun(new Date(day - 1))?.getTime() ?? null,
  };
  return nextAsTemporal(times, zone, { now, until: now + CRON_AHEAD_MS });
}

/** Returns the hours and minutes of each matching day, ascending. */
function clockOf(expression: string): { readonly hours: number[]; readonly minutes: number[] } {
  const [minute = '', hour = ''] = expression.split(' ');
  return { hours: valuesOf(hour, 23), minutes: valuesOf(minute, 59) };
}

/** Returns the values of a field of numbers that croner has accepted. */
function valuesOf(field: string, last: number): number[] {
  const values = new Set<number>();
  for (const item of field.split(',')) {
    const [range = '', step = '1'] = item.split('/');
    const [from = 0, to = from] = range === '*' ? [0, last] : range.split('-').map(Number);
    for (let value = from; value <= to; value += Number(step)) values.add(value);
  }
  return [...values].sort((one, other) => one - other);
}

const daysOf = (expression: string): string => expression.split(' ').slice(2).join(' ');

/** Returns expressions for Temporal, in which both fields of days have to match. @throws BadRequestError */
function expressionsOf(text: string): readonly string[] {
  try {
    inUtc(text);
  } catch {
    throw refused('is not a valid cron expression');
  }
  const [minute, hour, day, month, weekday] = text.split(' ');
  if (day === '*' || weekday === '*') return [text];
  // As everywhere with cron, either field has to match if both are given.
  return [`${minute} ${hour} ${day} ${month} *`, `${minute} ${hour} * ${month} ${weekday}`];
}

/** Requires a distance. @throws BadRequestError if two runs on one day, or around one midnight, are too close together. */
function requireDistance(expressions: readonly string[], now: number): void {
  const [expression = ''] = expressions;
  const { hours, minutes } = clockOf(expression);
  const times = hours.flatMap((hour) => minutes.map((each) => hour * HOUR_MS + each * MINUTE_MS));
  const [first = 0] = times;
  const isClose = (time: number, index: number) => {
    const next = times[index + 1];
    if (next !== undefined) return next - time < SHORTEST_MS;
    const isOvernight = first + DAY_MS - time < SHORTEST_MS;
    return isOvernight && hasConsecutive(expressions.map(daysOf), now);
  };
  if (times.some(isClose)) throw refused('has runs less than 5 minutes apart');
}

/** Reports whether two consecutive days match, within the time that is looked ahead. */
function hasConsecutive(days: readonly string[], now: number): boolean {
  const matching = new Set<number>();
  for (const each of days) {
    const daily = inUtc(`0 0 ${each}`);
    let run = daily.nextRun(new Date(now - DAY_MS));
    while (run !== null && run.getTime() < now + CRON_AHEAD_MS) {
      matching.add(run.getTime() / DAY_MS);
      run = daily.nextRun(run);
    }
  }
  return [...matching].some((day) => matching.has(day + 1));
}

const inUtc = (expression: string): Cron =>
  new Cron(expression, { timezone: 'UTC', mode: '5-part', paused: true });

/** @throws BadRequestError */
function momentOf([text, minutes, seconds = '00', offset]: RegExpExecArray, zone: string): number {
  const wall = Date.parse(`${minutes}:${seconds}Z`);
  if (Number.isNaN(wall) || new Date(wall).toISOString() !== `${minutes}:${seconds}.000Z`) {
    throw refused('is not a valid time');
  }
  if (offset !== undefined) return Date.parse(`${minutes}:${seconds}${offset}`);
  const [moment] = momentsOf(zone, wall);
  if (moment === undefined) throw refused(`is skipped by the clocks of ${zone}: ${text}`);
  return moment;
}

const refused = (reason: string): BadRequestError => new BadRequestError(`schedule ${reason}`);
