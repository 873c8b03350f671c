import { expect, test } from 'vitest';
import { FairLimiter } from '../../src/lib/fair-limiter.js';
import { runWithDeadline } from '../../src/workspace/run-with-deadline.js';

const ADA = { owner: 'ada', signal: undefined };

/** Returns work that ends when the test ends it. */
function work() {
  let end = () => {};
  let ending: AbortSignal | undefined;
  const done = new Promise<string>((resolve) => {
    end = () => resolve('done');
  });
  const begin = (signal: AbortSignal) => {
    ending = signal;
    return done;
  };
  return { begin, end: () => end(), hasBegun: () => !!ending, isToEnd: () => ending?.aborted };
}

const settled = () => new Promise((resolve) => void setImmediate(resolve));

test(
  'refuses work without a slot by the deadline and never starts it',
  { tags: 'attack' },
  async () => {
    const limiter = new FairLimiter({ atOnce: 2, perOwner: 1 });
    const [long, next, other] = [work(), work(), work()];
    const first = runWithDeadline(limiter, ADA, long.begin);
    await expect(
      runWithDeadline(limiter, { ...ADA, withinMs: 20 }, next.begin),
    ).rejects.toMatchObject({
      status: 503,
    });
    // A caller with many requests does not block others.
    const bobs = runWithDeadline(limiter, { ...ADA, owner: 'bob' }, other.begin);
    await settled();
    expect([other.hasBegun(), limiter.state]).toEqual([true, { running: 2, waiting: 0 }]);
    other.end();
    long.end();
    expect(await Promise.all([first, bobs])).toEqual(['done', 'done']);
    await settled();
    expect([next.hasBegun(), limiter.state]).toEqual([false, { running: 0, waiting: 0 }]);
  },
);

test('answers 500 at the deadline and keeps the slot until the work ends', async () => {
  const limiter = new FairLimiter({ atOnce: 1 });
  const long = work();
  await expect(
    runWithDeadline(limiter, { ...ADA, withinMs: 20 }, long.begin),
  ).rejects.toMatchObject({
    status: 500,
    message: 'The workspace did not finish the request in time: retry later',
  });
  expect([long.isToEnd(), limiter.state.running]).toEqual([true, 1]);
  long.end();
  await settled();
  expect(limiter.state.running).toBe(0);
});

test('rejects with the reason of the abort, before and after the work starts', async () => {
  const limiter = new FairLimiter({ atOnce: 1 });
  const leaving = new AbortController();
  const [long, next] = [work(), work()];
  const both = [long, next].map(({ begin }) =>
    runWithDeadline(limiter, { ...ADA, signal: leaving.signal }, begin),
  );
  await settled();
  leaving.abort(new Error('gone'));
  for (const each of both) await expect(each).rejects.toThrow('gone');
  expect([long.isToEnd(), next.hasBegun()]).toEqual([true, false]);
  long.end();
});

test('passes on the error of the work', async () => {
  const failing = () => Promise.reject(new Error('broken'));
  await expect(runWithDeadline(new FairLimiter({ atOnce: 1 }), ADA, failing)).rejects.toThrow(
    'broken',
  );
});
