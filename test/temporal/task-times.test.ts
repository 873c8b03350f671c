import { afterAll, beforeAll, expect, test } from 'vitest';
import { nextTime, parseSchedule } from '../../src/agents/tasks/task-schedule.js';
import { testTemporal, type TestTemporal } from '../support/temporal.js';

let temporal: TestTemporal;
beforeAll(async () => {
  temporal = await testTemporal();
});
afterAll(() => temporal?.close());

/** Returns the next ten times of a cron expression, as Temporal has them. */
async function temporalTimes(expressions: readonly string[], zone: string, from: number) {
  const handle = await temporal.client.schedule.create({
    scheduleId: `times-${Math.random()}`,
    spec: { cronExpressions: [...expressions], timezone: zone, startAt: new Date(from + 1_000) },
    action: { type: 'startWorkflow', workflowType: 'none', taskQueue: 'none' },
    state: { paused: true },
  });
  const { info } = await handle.describe();
  await handle.delete();
  return info.nextActionTimes.map((time) => time.toISOString());
}

function ownTimes(text: string, zone: string, from: number, count: number): string[] {
  const times: string[] = [];
  const schedule = parseSchedule(text, zone);
  for (let after: number | null = from; times.length < count;) {
    after = nextTime(schedule, { timezone: zone, setAt: new Date(from) }, after);
    if (after === null) break;
    times.push(new Date(after).toISOString());
  }
  return times;
}

const EXPRESSIONS = [
  '30 1 * * *',
  '30 2 * * *',
  '*/20 * * * *',
  '15 */3 1,28 * SUN',
  '0 2,3 * * *',
];

/** Hours before and after a change of the clocks: both changes of a year in each zone. */
const CHANGES: readonly (readonly [string, string])[] = [
  ['Europe/Berlin', '2035-03-25T01:00:00Z'],
  ['Europe/Berlin', '2035-10-28T01:00:00Z'],
  ['America/New_York', '2035-03-11T07:00:00Z'],
  ['America/New_York', '2035-11-04T06:00:00Z'],
  ['Australia/Lord_Howe', '2035-03-31T15:00:00Z'],
  ['Australia/Lord_Howe', '2035-10-06T15:30:00Z'],
];

test.each(CHANGES)(
  'has the times of Temporal around a change of clocks in %s at %s',
  async (zone, at) => {
    for (const expression of EXPRESSIONS) {
      const schedule = parseSchedule(expression, zone);
      if (schedule.kind !== 'cron') throw new TypeError('not a cron expression');
      for (const hours of [-26, -1, 0]) {
        const from = Date.parse(at) + hours * 3_600_000 + 60_000;
        const theirs = await temporalTimes(schedule.expressions, zone, from);
        expect(theirs.length).toBeGreaterThan(5);
        expect([expression, hours, ownTimes(expression, zone, from, theirs.length)]).toEqual([
          expression,
          hours,
          theirs,
        ]);
      }
    }
  },
);

test.each([
  '0-59/5 9-17 * * mon-FRI',
  '0 9 * * 7',
  '0 9 * * 5-7',
  '0 9 * * 0-7',
  '0 9 29 2 *',
  '07 09 */7 JAN,jul *',
  '1-30/10,45 */6 1-7 * 2',
  '0 0 */2 * 1',
])('reads the expression %j as Temporal does', async (expression) => {
  const from = Date.parse('2035-11-27T05:00:00Z');
  const schedule = parseSchedule(expression, 'UTC');
  if (schedule.kind !== 'cron') throw new TypeError('not a cron expression');
  const theirs = await temporalTimes(schedule.expressions, 'UTC', from);
  expect(ownTimes(expression, 'UTC', from, theirs.length)).toEqual(theirs);
});
