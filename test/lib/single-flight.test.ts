import { expect, test } from 'vitest';
import { SingleFlight } from '../../src/lib/single-flight.js';

const signal = new AbortController().signal;

test('starts a new run once all earlier callers have left', async () => {
  const work = new SingleFlight<string>();
  const leaving = new AbortController();
  const ended = work.run('a', leaving.signal, () => new Promise(() => undefined));
  leaving.abort(new Error('left'));
  await expect(ended).rejects.toThrow('left');
  await expect(work.run('a', signal, () => Promise.resolve('again'))).resolves.toBe('again');
});

test('starts a new run after a failed run', async () => {
  const work = new SingleFlight<string>();
  const fails = () => Promise.reject(new Error('broken'));
  const both = [work.run('a', signal, fails), work.run('a', signal, fails)];
  for (const each of both) await expect(each).rejects.toThrow('broken');
  await expect(work.run('a', signal, () => Promise.resolve('again'))).resolves.toBe('again');
});
