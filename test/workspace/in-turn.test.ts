import { expect, test } from 'vitest';
import { Turns } from '../../src/lib/turns.js';
import { inTurn } from '../../src/workspace/in-turn.js';

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
    const turns = new Turns(2, 1);
    const [long, next, other] = [work(), work(), work()];
    const first = inTurn(turns, ADA, long.begin);
    await expect(inTurn(turns, { ...ADA, withinMs: 20 }, next.begin)).rejects.toMatchObject({
      status: 503,
    });
    // The one who has many at work is in nobody else's way.
    const bobs = inTurn(turns, { ...ADA, owner: 'bob' }, other.begin);
    await settled();
    expect([other.hasBegun(), turns.state]).toEqual([true, { taken: 2, waiting: 0 }]);
    other.end();
    long.end();
    expect(await Promise.all([first, bobs])).toEqual(['done', 'done']);
    await settled();
    expect([next.hasBegun(), turns.state]).toEqual([false, { taken: 0, waiting: 0 }]);
  },
);

test('what is not done in time is told so, and keeps its turn until it has ended', async () => {
  const turns = new Turns(1);
  const long = work();
  await expect(inTurn(turns, { ...ADA, withinMs: 20 }, long.begin)).rejects.toMatchObject({
    status: 500,
    message: 'The workspace did not finish the request in time: retry later',
  });
  expect([long.isToEnd(), turns.state.taken]).toEqual([true, 1]);
  long.end();
  await settled();
  expect(turns.state.taken).toBe(0);
});

test('who leaves is told why, whether it has begun or not', async () => {
  const turns = new Turns(1);
  const leaving = new AbortController();
  const [long, next] = [work(), work()];
  const both = [long, next].map(({ begin }) =>
    inTurn(turns, { ...ADA, signal: leaving.signal }, begin),
  );
  await settled();
  leaving.abort(new Error('gone'));
  for (const each of both) await expect(each).rejects.toThrow('gone');
  expect([long.isToEnd(), next.hasBegun()]).toEqual([true, false]);
  long.end();
});

test('what fails fails as it does', async () => {
  const failing = () => Promise.reject(new Error('broken'));
  await expect(inTurn(new Turns(1), ADA, failing)).rejects.toThrow('broken');
});
