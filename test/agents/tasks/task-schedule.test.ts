import { expect, test } from 'vitest';
import { nextTime, parseSchedule, requireUsable } from '../../../src/agents/tasks/task-schedule.js';
import { isTimeZone, momentsOf } from '../../../src/agents/tasks/zoned-time.js';
import { BadRequestError } from '../../../src/lib/errors.js';

const NOW = Date.parse('2026-11-28T05:00:00Z');

const check = (text: string, zone = 'UTC') => requireUsable(parseSchedule(text, zone), zone, NOW);

const next = (text: string, zone = 'UTC', now: number | string | undefined = NOW) => {
  const after = typeof now === 'string' ? Date.parse(now) : now;
  const time = nextTime(parseSchedule(text, zone), { timezone: zone, setAt: new Date(NOW) }, after);
  return time === null ? null : new Date(time).toISOString();
};

test.each([
  '',
  '* * * * *',
  '*/4 * * * *',
  '0,3 9 * * *',
  '58,0 23,0 * * *',
  '0 9 * *',
  '0 9 * * * *',
  '60 * * * *',
  '0 24 * * *',
  '0 9 32 * *',
  '0 9 0 * *',
  '0 9 * 13 *',
  '0 9 * * 8',
  '0 9 31 2 *',
  '0 9 30 FEB *',
  '0 9 L * *',
  '0 9 15W * *',
  '0 9 * * 1#2',
  '0 9 ? * 1',
  '@daily',
  '5/15 * * * *',
  '*/0 * * * *',
  '0 9 * * FRI-MON',
  '0 9 * * FUN',
  'TZ=UTC 0 9 * * *',
  '0 9  * * *',
  '4m',
  '8d',
  '1.5h',
  'every day',
  '2026-11-28T04:59:59Z',
  '2026-11-28T05:00Z',
  '2027-11-30T05:00:00Z',
  '2026-02-30T09:00Z',
  '2026-12-01T24:00',
  '2026-12-01',
  '2026-12-01T09:00+25:00',
])('refuses the schedule %j', (text) => {
  expect(() => check(text)).toThrow(BadRequestError);
  expect(() => check(text)).toThrow(/^schedule /);
});

test.each([
  '*/5 * * * *',
  '0-59/5 * * * *',
  '0 9 * * MON-FRI',
  '30 9 1,15 jan,JUL sun',
  '0 9 29 2 *',
  '58,0 0,23 1 * *',
  '5m',
  '7d',
  '2026-11-28T05:00:01Z',
  '2027-11-28T09:00+01:00',
])('accepts the schedule %j', (text) => {
  expect(() => check(text)).not.toThrow();
});

test.each([
  ['Mars/Olympus', false],
  ['+02:00', false],
  ['europe/berlin', false],
  ['UTC+2', false],
  ['../etc/passwd', false],
  ['', false],
  ['UTC', true],
  ['Europe/Berlin', true],
  ['Asia/Kolkata', true],
  ['America/Argentina/Buenos_Aires', true],
])('decides whether %j is a time zone', (name, expected) => {
  expect(isTimeZone(name)).toBe(expected);
});

test('reads an ISO time without an offset in the zone of its task', () => {
  expect(next('2026-12-01T09:00', 'Asia/Tokyo')).toBe('2026-12-01T00:00:00.000Z');
  expect(next('2026-12-01T09:00:30', 'America/New_York')).toBe('2026-12-01T14:00:30.000Z');
  expect(next('2026-12-01T09:00+02:00', 'Asia/Tokyo')).toBe('2026-12-01T07:00:00.000Z');
  expect(next('2026-12-01T09:00Z', 'UTC', '2026-12-01T09:00:00Z')).toBeNull();
  expect(() => parseSchedule('2027-03-28T02:30', 'Europe/Berlin')).toThrow(BadRequestError);
});

test('counts intervals from the setting', () => {
  expect(next('30m')).toBe('2026-11-28T05:30:00.000Z');
  expect(next('30m', 'UTC', '2026-11-28T06:00:00Z')).toBe('2026-11-28T06:30:00.000Z');
});

test('runs on either day when an expression names days of the month and of the week', () => {
  const days = ['2026-11-28T05:00:00Z'];
  for (let run = 0; run < 3; run++) days.push(next('0 9 1 * MON', 'UTC', days.at(-1))!);
  expect(days.slice(1)).toEqual([
    '2026-11-30T09:00:00.000Z',
    '2026-12-01T09:00:00.000Z',
    '2026-12-07T09:00:00.000Z',
  ]);
});

test('skips a time that the clocks skip, and chooses among two as Temporal does', () => {
  const berlin = 'Europe/Berlin';
  expect(next('30 2 * * *', berlin, '2027-03-27T12:00:00Z')).toBe('2027-03-29T00:30:00.000Z');
  expect(next('30 2 * * *', berlin, '2027-10-30T12:00:00Z')).toBe('2027-10-31T01:30:00.000Z');
  expect(momentsOf(berlin, Date.UTC(2027, 9, 31, 2, 30))).toHaveLength(2);
  const newYork = 'America/New_York';
  expect(next('30 1 * * *', newYork, '2027-11-06T12:00:00Z')).toBe('2027-11-07T05:30:00.000Z');
  expect(next('30 1 * * *', newYork, '2027-11-07T05:30:00Z')).toBe('2027-11-07T06:30:00.000Z');
});
