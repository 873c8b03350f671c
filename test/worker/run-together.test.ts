import { setTimeout as delay } from 'node:timers/promises';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  PartFailedError,
  runTogether,
  runWorkers,
  untilAborted,
  type Part,
} from '../../worker/run-together.js';
import { until } from '../support/until.js';
import { testTemporal, type TestTemporal } from '../support/temporal.js';

describe('parts of a worker', () => {
  const never = new AbortController().signal;
  const fails: Part = { name: 'broken', run: () => Promise.reject(new Error('out of luck')) };

  test('all parts run until they are stopped', async () => {
    const stop = new AbortController();
    const ended: string[] = [];
    const part = (name: string): Part => ({
      name,
      async run(signal) {
        await untilAborted(signal);
        ended.push(name);
      },
    });
    const running = runTogether([part('one'), part('two')], stop.signal);
    await delay(20);
    expect(ended).toEqual([]);
    stop.abort();
    await running;
    expect(ended).toEqual(['one', 'two']);
  });

  test('all parts end when one fails, and its error is thrown after the others have ended', async () => {
    let cleanly = false;
    const slow: Part = {
      name: 'slow',
      async run(signal) {
        await untilAborted(signal);
        await delay(50);
        cleanly = true;
      },
    };
    await expect(runTogether([slow, fails], never)).rejects.toThrow(
      'The worker ends because its part "broken" has failed: out of luck',
    );
    expect(cleanly).toBe(true);
  });

  test('all parts end when one ends without being stopped', async () => {
    const gone: Part = { name: 'gone', run: () => Promise.resolve() };
    const other: Part = { name: 'other', run: untilAborted };
    await expect(runTogether([other, gone], never)).rejects.toThrow(PartFailedError);
  });
});

describe('Temporal workers', () => {
  let temporal: TestTemporal;
  beforeAll(async () => {
    temporal = await testTemporal();
  });
  afterAll(() => temporal?.close());

  test('all Temporal workers end when one does, and release their connection', async () => {
    const connection = await NativeConnection.connect({ address: temporal.address });
    const workers = await Promise.all(
      ['first', 'second'].map((taskQueue) =>
        Worker.create({
          connection,
          namespace: temporal.namespace,
          taskQueue,
          activities: { nothing: () => Promise.resolve() },
        }),
      ),
    );
    const [first, second] = workers;
    const running = runWorkers(() => Promise.resolve(workers), new AbortController().signal);
    const failure = expect(running).rejects.toThrow('its part "second" has failed');
    await until(() => Promise.resolve(second?.getState() === 'RUNNING'));
    second?.shutdown();
    await failure;
    expect([first?.getState(), second?.getState()]).toEqual(['STOPPED', 'STOPPED']);
    await connection.close();
  });
});
