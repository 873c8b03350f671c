import { expect, test } from 'vitest';
import { FairLimiter } from '../../src/lib/fair-limiter.js';
import { runWithDeadline } from '../../src/workspace/run-with-deadline.js';

const ADA = { owner: 'ada', signal: undefined };

/** Work that is done when it is told to be, whoever waits for it. */
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
  'what has had no turn in time is told so, and is never begun',
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
    // The one who has many at work is in nobody else's way.
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

test('what is not done in time is told so, and keeps its turn until it has ended', async () => {
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

test('who leaves is told why, whether it has begun or not', async () => {
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

test('what fails fails as it does', async () => {
  const failing = () => Promise.reject(new Error('broken'));
  await expect(runWithDeadline(new FairLimiter({ atOnce: 1 }), ADA, failing)).rejects.toThrow(
    'broken',
  );
});
