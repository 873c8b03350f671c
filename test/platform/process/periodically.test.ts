import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { TableChanges } from '../../../src/platform/database/row-changes.js';
import { periodically } from '../../../src/platform/process/periodically.js';

afterEach(() => {
  vi.restoreAllMocks();
});

test('logs a continuing failure once a minute, and a new failure after a success at once', async () => {
  const log = pino({ level: 'silent' });
  const warn = vi.spyOn(log, 'warn');
  let clock = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  const stop = new AbortController();
  const logged: number[] = [];
  let times = 0;
  const work = () => {
    logged.push(warn.mock.calls.length);
    times++;
    clock += 1_000;
    if (times === 75) stop.abort();
    return times === 70 ? Promise.resolve() : Promise.reject(new RangeError('out'));
  };
  await periodically({ everyMs: 1, failure: 'not done', log, work }, stop.signal);
  expect([logged[1], logged[60], logged[61], logged[70], logged[71]]).toEqual([1, 1, 2, 2, 3]);
  expect(warn).toHaveBeenCalledTimes(3);
});

test('runs the work at once on a notification, even if it arrives during the work', async () => {
  const [log, changes, stop] = [
    pino({ enabled: false }),
    new TableChanges(),
    new AbortController(),
  ];
  let times = 0;
  const work = () => {
    times++;
    // First a change before the wait begins, then a change during the wait.
    if (times === 1) changes.notify();
    else if (times === 2) setImmediate(() => changes.notify());
    else stop.abort();
    return Promise.resolve();
  };
  await periodically({ everyMs: 3_600_000, failure: 'not done', log, changes, work }, stop.signal);
  expect(times).toBe(3);
});

test('randomizes its pauses, so that processes started together drift apart', async () => {
  const chance = vi.spyOn(Math, 'random').mockReturnValue(1);
  const [log, changes] = [pino({ enabled: false }), new TableChanges()];
  const after = vi.spyOn(changes, 'after').mockResolvedValue();
  for (const received of [{ changes }, {}]) {
    const stop = new AbortController();
    const work = () => Promise.resolve(stop.abort());
    await periodically(
      { everyMs: 1_000, failure: 'not done', log, work, ...received },
      stop.signal,
    );
  }
  expect(chance).toHaveBeenCalledTimes(2);
  expect(after).toHaveBeenCalledExactlyOnceWith(0, 900, expect.anything());
});
