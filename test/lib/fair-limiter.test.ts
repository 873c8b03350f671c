import { setImmediate as settled } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { TooManyRequestsError } from '../../src/lib/errors.js';
import { FairLimiter, type LimiterBounds, type Release } from '../../src/lib/fair-limiter.js';

/** A limiter whose work ends by name; records who began and who was refused. */
class Calls {
  readonly begun: string[] = [];
  readonly refused: string[] = [];
  readonly limiter: FairLimiter;
  readonly #ends = new Map<string, Release>();

  constructor(bounds: LimiterBounds) {
    this.limiter = new FairLimiter(bounds);
  }

  async add(
    name: string,
    { owner = name, isUrgent = false, signal = undefined as AbortSignal | undefined } = {},
  ) {
    const work = async (release: Release) => {
      this.begun.push(name);
      await new Promise<void>((resolve) => {
        this.#ends.set(name, () => {
          release();
          resolve();
        });
      });
    };
    await this.limiter.run({ owner, isUrgent, signal }, work).catch((error: unknown) => {
      if (!(error instanceof TooManyRequestsError)) throw error;
      this.refused.push(name);
    });
  }

  /** Ends work, so that the next can begin. */
  async end(name: string): Promise<void> {
    await settled();
    this.#ends.get(name)?.();
    await settled();
  }
}

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

const refusal = () => new TooManyRequestsError('full', { max: 1, resetS: 1 });

test('runs no more at a time than its bound, and all in the end', async () => {
  const calls = new Calls({ atOnce: 2 });
  const all = Promise.all(names('agent', 5).map((name) => calls.add(name)));
  for (const name of names('agent', 5)) {
    await settled();
    expect(calls.limiter.state.running).toBeLessThanOrEqual(2);
    await calls.end(name);
  }
  await all;
  expect(calls.begun).toEqual(names('agent', 5));
  expect(calls.limiter.state).toEqual({ running: 0, waiting: 0 });
});

test('grants one owner no more slots than its share, even when the others are free', async () => {
  const calls = new Calls({ atOnce: 8, perOwner: 2 });
  for (const name of names('hanging', 40)) void calls.add(name, { owner: 'one' });
  await settled();
  expect(calls.limiter.state).toEqual({ running: 2, waiting: 38 });
});

test('keeps half of the slots free of one owner whose forty calls hang', async () => {
  const calls = new Calls({ atOnce: 4 });
  for (const name of names('hanging', 40)) void calls.add(name, { owner: 'one', isUrgent: true });
  void calls.add('other');
  await settled();
  expect(calls.begun).toEqual(['hanging0', 'hanging1', 'other']);
});

test('alternates between owners, regardless of their numbers of calls', async () => {
  const calls = new Calls({ atOnce: 1 });
  for (const name of names('a', 3)) void calls.add(name, { owner: 'a' });
  for (const name of names('b', 2)) void calls.add(name, { owner: 'b' });
  for (const name of ['a0', 'b0', 'a1', 'b1', 'a2']) await calls.end(name);
  expect(calls.begun).toEqual(['a0', 'b0', 'a1', 'b1', 'a2']);
});

test('runs urgent calls first, and leaves every fourth slot to the others', async () => {
  const calls = new Calls({ atOnce: 1 });
  for (const name of names('reboot', 3)) void calls.add(name);
  for (const name of names('operator', 6)) void calls.add(name, { isUrgent: true });
  await settled();
  for (let slot = 0; slot < 9; slot++) await calls.end(calls.begun[slot] ?? '');
  expect(calls.begun).toEqual([
    ...['reboot0', 'operator0', 'operator1', 'reboot1'],
    ...['operator2', 'operator3', 'operator4', 'reboot2', 'operator5'],
  ]);
});

test('forgets a caller that stops waiting, and keeps the slot of running work', async () => {
  const calls = new Calls({ atOnce: 1 });
  const leaving = new AbortController();
  void calls.add('first', { owner: 'a', signal: leaving.signal });
  const given = calls.add('second', { owner: 'a', signal: leaving.signal });
  void calls.add('third', { owner: 'a' });
  leaving.abort(new Error('cancelled'));
  await expect(given).rejects.toThrow('cancelled');
  expect(calls.begun).toEqual(['first']);
  await calls.end('first');
  expect(calls.begun).toEqual(['first', 'third']);
});

test('counts a slot once that is released twice', async () => {
  const limiter = new FairLimiter({ atOnce: 1 });
  const begun: string[] = [];
  let finish: () => void = () => undefined;
  const first = limiter.run({ owner: 'a' }, async (release) => {
    release();
    release();
    await new Promise<void>((resolve) => (finish = resolve));
  });
  await limiter.run({ owner: 'b' }, () => Promise.resolve(begun.push('b')));
  finish();
  await first;
  expect(begun).toEqual(['b']);
  expect(limiter.state).toEqual({ running: 0, waiting: 0 });
});

test('passes the slot of work that fails to the next', async () => {
  const limiter = new FairLimiter({ atOnce: 1 });
  const failing = limiter.run({ owner: 'a' }, () => Promise.reject(new Error('no')));
  const next = limiter.run({ owner: 'b' }, () => Promise.resolve('done'));
  await expect(failing).rejects.toThrow('no');
  expect(await next).toBe('done');
  expect(limiter.state).toEqual({ running: 0, waiting: 0 });
});

test('limits each key by itself when only owners are bounded, first come first served', async () => {
  const calls = new Calls({ atOnce: Infinity, perOwner: 1 });
  for (const name of ['a0', 'b0', 'a1', 'a2']) void calls.add(name, { owner: name.slice(0, 1) });
  await settled();
  expect(calls.begun).toEqual(['a0', 'b0']);
  for (const name of ['a0', 'a1', 'b0', 'a2']) await calls.end(name);
  expect(calls.begun).toEqual(['a0', 'b0', 'a1', 'a2']);
  expect(calls.limiter.state).toEqual({ running: 0, waiting: 0 });
});

test('runs no work whose signal has aborted', async () => {
  const limiter = new FairLimiter({ atOnce: 1 });
  const signal = AbortSignal.abort(new Error('left'));
  await expect(limiter.acquire({ owner: 'a', signal })).rejects.toThrow('left');
  expect(limiter.state).toEqual({ running: 0, waiting: 0 });
});

test('refuses a caller that waits too long, and serves the next', async () => {
  const limiter = new FairLimiter({ atOnce: 1, queue: { maxWaitMs: 1, refusal } });
  const release = await limiter.acquire({ owner: 'a' });
  await expect(limiter.acquire({ owner: 'a' })).rejects.toThrow(TooManyRequestsError);
  release();
  (await limiter.acquire({ owner: 'a' }))();
  expect(limiter.state).toEqual({ running: 0, waiting: 0 });
});

test(
  'serves another owner before the backlog of one that calls a hundred times',
  { tags: 'attack' },
  async () => {
    const calls = new Calls({ atOnce: 2, perOwner: 2, queue: { max: 50, perOwner: 10, refusal } });
    for (const name of names('flood', 100)) void calls.add(name, { owner: 'flood' });
    void calls.add('other');
    await settled();
    expect(calls.begun).toEqual(['flood0', 'flood1']);
    expect(calls.refused).toHaveLength(88);
    await calls.end('flood0');
    await calls.end('flood1');
    expect(calls.begun).toEqual(['flood0', 'flood1', 'other', 'flood2']);
  },
);

test(
  'makes room in a full queue for an owner with less, at the expense of the owner with most',
  { tags: 'attack' },
  async () => {
    const calls = new Calls({ atOnce: 1, queue: { max: 4, perOwner: 3, refusal } });
    for (const name of ['a0', 'a1', 'a2', 'b0', 'b1', 'c0', 'd0', 'e0', 'a3']) {
      void calls.add(name, { owner: name.slice(0, 1) });
    }
    await settled();
    // c and d replace a2 and b1; no owner, including a3's, has more slots than e would have.
    expect(calls.refused.toSorted()).toEqual(['a2', 'a3', 'b1', 'e0']);
    for (const name of ['a0', 'b0', 'c0', 'd0', 'a1']) await calls.end(name);
    expect(calls.begun).toEqual(['a0', 'b0', 'c0', 'd0', 'a1']);
    expect(calls.limiter.state).toEqual({ running: 0, waiting: 0 });
  },
);

test('jobs of one key run one after the other, also after a failure', async () => {
  const turns = new FairLimiter({ atOnce: Infinity, perOwner: 1 });
  const ran: string[] = [];
  const work = (name: string) => async () => {
    ran.push(`${name} begins`);
    await Promise.resolve();
    ran.push(`${name} ends`);
    if (name === 'a') throw new Error('a failed');
    return name;
  };
  const all = await Promise.allSettled(
    ['a', 'b', 'c'].map((name) => turns.run({ owner: 'k' }, work(name))),
  );
  expect(all.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(ran).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]));
});

test('jobs of different keys run concurrently', async () => {
  const turns = new FairLimiter({ atOnce: Infinity, perOwner: 1 });
  let end = () => {};
  const first = turns.run({ owner: 'a' }, () => new Promise<void>((resolve) => (end = resolve)));
  expect(await turns.run({ owner: 'b' }, () => Promise.resolve('done'))).toBe('done');
  end();
  await first;
});
