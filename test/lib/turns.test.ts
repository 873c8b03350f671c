import { expect, test } from 'vitest';
import { Turns, type EndTurn } from '../../src/lib/turns.js';

/** Asks one after the other; knows who began, in that order, and ends their turns. */
class Queue {
  readonly begun: string[] = [];
  readonly #ends = new Map<string, EndTurn>();

  constructor(readonly turns: Turns) {}

  ask(
    name: string,
    { owner = name, isUrgent = false, signal = undefined as AbortSignal | undefined } = {},
  ) {
    return this.turns.run({ owner, isUrgent, signal }, async (endTurn) => {
      this.begun.push(name);
      await new Promise<void>((resolve) => {
        this.#ends.set(name, () => {
          endTurn();
          resolve();
        });
      });
    });
  }

  /** Ends a turn, and lets those begin who wait for it. */
  async end(name: string): Promise<void> {
    await this.settled();
    this.#ends.get(name)?.();
    await this.settled();
  }

  settled(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

test('no more than that go on at a time, and all of them in the end', async () => {
  const queue = new Queue(new Turns(2));
  const all = Promise.all(names('agent', 5).map((name) => queue.ask(name)));
  for (const name of names('agent', 5)) {
    await queue.settled();
    expect(queue.turns.state.taken).toBeLessThanOrEqual(2);
    await queue.end(name);
  }
  await all;
  expect(queue.begun).toEqual(names('agent', 5));
  expect(queue.turns.state).toEqual({ taken: 0, waiting: 0 });
});

test('one owner has no more turns than is said, though nobody else wants one', async () => {
  const queue = new Queue(new Turns(8, 2));
  for (const name of names('hanging', 40)) void queue.ask(name, { owner: 'one' });
  await queue.settled();
  expect(queue.turns.state).toEqual({ taken: 2, waiting: 38 });
});

test("one owner's forty that hang take half of the turns, and hold up nobody else", async () => {
  const queue = new Queue(new Turns(4));
  for (const name of names('hanging', 40)) void queue.ask(name, { owner: 'one', isUrgent: true });
  void queue.ask('other');
  await queue.settled();
  expect(queue.begun).toEqual(['hanging0', 'hanging1', 'other']);
});

test('owners take turns, however much each of them asks for', async () => {
  const queue = new Queue(new Turns(1));
  for (const name of names('a', 3)) void queue.ask(name, { owner: 'a' });
  for (const name of names('b', 2)) void queue.ask(name, { owner: 'b' });
  for (const name of ['a0', 'b0', 'a1', 'b1', 'a2']) await queue.end(name);
  expect(queue.begun).toEqual(['a0', 'b0', 'a1', 'b1', 'a2']);
});

test('who is urgent goes first, and leaves every fourth turn to the others', async () => {
  const queue = new Queue(new Turns(1));
  for (const name of names('reboot', 3)) void queue.ask(name);
  for (const name of names('operator', 6)) void queue.ask(name, { isUrgent: true });
  await queue.settled();
  for (let turn = 0; turn < 9; turn++) await queue.end(queue.begun[turn] ?? '');
  expect(queue.begun).toEqual([
    ...['reboot0', 'operator0', 'operator1', 'reboot1'],
    ...['operator2', 'operator3', 'operator4', 'reboot2', 'operator5'],
  ]);
});

test('who gives up waiting is forgotten, and who has a turn keeps it', async () => {
  const queue = new Queue(new Turns(1));
  const giveUp = new AbortController();
  void queue.ask('first');
  const given = queue.ask('second', { signal: giveUp.signal });
  void queue.ask('third');
  giveUp.abort(new Error('cancelled'));
  await expect(given).rejects.toThrow('cancelled');
  await queue.end('first');
  expect(queue.begun).toEqual(['first', 'third']);
});

test('a turn that was ended early lets the next one begin, and counts once', async () => {
  const turns = new Turns(1);
  const begun: string[] = [];
  let goOn: () => void = () => undefined;
  const first = turns.run({ owner: 'a', isUrgent: false }, async (endTurn) => {
    endTurn();
    endTurn();
    await new Promise<void>((resolve) => (goOn = resolve));
  });
  await turns.run({ owner: 'b', isUrgent: false }, () => Promise.resolve(begun.push('b')));
  goOn();
  await first;
  expect(begun).toEqual(['b']);
  expect(turns.state).toEqual({ taken: 0, waiting: 0 });
});

test('work that fails gives its turn back', async () => {
  const turns = new Turns(1);
  const failing = turns.run({ owner: 'a', isUrgent: false }, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(turns.state.taken).toBe(0);
});
