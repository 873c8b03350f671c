import { describe, expect, test } from 'vitest';
import { Chats } from '../src/chat/chats.js';
import type { Database } from '../src/database/database.js';
import { TooManyRequestsError } from '../src/errors.js';
import { LiveLogs } from '../src/logs/live-logs.js';
import { Shares } from '../src/shares.js';

const never = () => new AbortController().signal;

test('what one owner has under way is bounded, and so is all together', () => {
  const shares = new Shares({ most: 3, perOwner: 2, refusal: 'enough' });
  const first = shares.take('one');
  shares.take('one');
  expect(() => shares.take('one')).toThrow(
    new TooManyRequestsError('enough', undefined, { retryAfter: 5 }),
  );
  shares.take('other');
  expect(() => shares.take('third')).toThrow(TooManyRequestsError);
  first();
  first();
  shares.take('third');
  expect(() => shares.take('one')).toThrow(TooManyRequestsError);
});

test(
  'those who have as much as they may, together, keep nobody out who has little',
  { tags: 'attack' },
  () => {
    const [most, perOwner] = [256, 64];
    const shares = new Shares({ most, perOwner });
    for (let greedy = 0; greedy < 50; greedy++) {
      while (shares.tryTake(`greedy ${greedy}`));
    }
    expect(shares.tryTake('other')).toBeDefined();
    expect(shares.tryTake('other')).toBeUndefined();
  },
);

test('what is taken may be more than one, and is given back as a whole', () => {
  const shares = new Shares({ perOwner: 10 });
  const giveBack = shares.take('one', 8);
  expect(shares.tryTake('one', 3)).toBeUndefined();
  expect(() => shares.take('one', 3)).toThrow('Too many requests at a time, please wait.');
  expect(shares.tryTake('other', 10)).toBeDefined();
  giveBack();
  expect(shares.tryTake('one', 10)).toBeDefined();
});

describe('who has as much under way as one may', { tags: 'attack' }, () => {
  test("of log streams keeps nobody else from following an agent's log", () => {
    const live = new LiveLogs();
    const host = {
      async *logs() {
        yield await new Promise<never>(() => undefined); // silent until its reader leaves
      },
    };
    const leaving = new AbortController();
    const follow = (userId: string, signal = never()) =>
      live.follow(host, { id: 'a', userId }, { since: undefined, redact: [], signal });
    follow('one', leaving.signal);
    for (let count = 1; count < 20; count++) follow('one');
    expect(() => follow('one')).toThrow(TooManyRequestsError);
    follow('other');
    leaving.abort();
    follow('one');
  });

  test('of questions keeps nobody else from asking an agent', async () => {
    // As much of them as a question needs.
    const agentOf = (userId: string) => ({
      id: 'a',
      userId,
      host: 'local',
      status: 'active',
      port: 1,
    });
    const directory = { of: () => Promise.resolve({ ask: () => undefined }) };
    const settings = { ai: { provider: 'openai', providers: { openai: { apiKey: 'k' } } } };
    const chats = new Chats(
      ...([directory, settings] as unknown as ConstructorParameters<typeof Chats>),
    );
    const ask = (userId: string, signal = never()) => {
      const query = () => Promise.resolve([agentOf(userId)]);
      const tenant = { query } as unknown as ReturnType<Database['asUser']>;
      return chats.ask(tenant, { agentId: 'a', message: 'hello' }, signal);
    };
    const leaving = new AbortController();
    await ask('one', leaving.signal);
    for (let count = 1; count < 20; count++) await ask('one');
    await expect(ask('one')).rejects.toThrow(TooManyRequestsError);
    await ask('other');
    leaving.abort();
    await ask('one');
  });
});
