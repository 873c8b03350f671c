import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { TableNews } from '../../src/database/row-news.js';
import { periodically } from '../../worker/periodically.js';

afterEach(() => {
  vi.restoreAllMocks();
});

test('a failure that goes on is logged once a minute, and again as soon as it comes back', async () => {
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

test('what is heard, also while it is done, has it done at once', async () => {
  const [log, news, stop] = [pino({ enabled: false }), new TableNews(), new AbortController()];
  let times = 0;
  const work = () => {
    times++;
    // Once before the wait begins, and once in it.
    if (times === 1) news.tell();
    else if (times === 2) setImmediate(() => news.tell());
    else stop.abort();
    return Promise.resolve();
  };
  await periodically({ everyMs: 3_600_000, failure: 'not done', log, news, work }, stop.signal);
  expect(times).toBe(3);
});
