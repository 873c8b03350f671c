import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { FILES_AT_ONCE } from '../../api/backend/browse-contract.js';
import { RequestsInFlight } from '../../api/http/in-flight.js';
import { AI_CALLS_AT_ONCE } from '../../api/openai/limits.js';
import { WAITS_AT_ONCE } from '../../api/views/operations.js';
import { Chats } from '../../src/agents/chat/chats.js';
import type { Database } from '../../src/platform/database/database.js';
import { TooManyRequestsError } from '../../src/lib/errors.js';
import { LiveLogs } from '../../src/agents/logs/live-logs.js';
import { QuotaLimiter } from '../../src/lib/quota-limiter.js';

const never = () => new AbortController().signal;

test('bounds the amount of one owner and of all together', () => {
  const quota = new QuotaLimiter({ total: 3, perOwner: 2, message: 'enough' });
  const first = quota.take('one');
  quota.take('one');
  const refusedBy = (max: number) =>
    expect.objectContaining({ message: 'enough', limit: { max, resetS: 5 } });
  expect(() => quota.take('one')).toThrow(refusedBy(2));
  quota.take('other');
  expect(() => quota.take('third')).toThrow(refusedBy(3));
  first();
  first();
  quota.take('third');
  expect(() => quota.take('one')).toThrow(TooManyRequestsError);
});

test('keeps a reserve for owners that hold little', { tags: 'attack' }, () => {
  const quota = new QuotaLimiter({ total: 256, perOwner: 64 });
  for (let greedy = 0; greedy < 50; greedy++) {
    while (quota.tryTake(`greedy ${greedy}`));
  }
  expect(quota.tryTake('other')).toBeDefined();
  expect(quota.tryTake('other')).toBeUndefined();
});

test('reserves amounts above one and releases them completely', () => {
  const quota = new QuotaLimiter({ perOwner: 10 });
  const release = quota.take('one', 8);
  expect(quota.tryTake('one', 3)).toBeUndefined();
  expect(() => quota.take('one', 3)).toThrow('Too many requests at a time, please wait.');
  expect(quota.tryTake('other', 10)).toBeDefined();
  release();
  expect(quota.tryTake('one', 10)).toBeDefined();
});

describe('a client at its quota', { tags: 'attack' }, () => {
  test.each([
    ['AI calls', AI_CALLS_AT_ONCE],
    ['awaited operations', WAITS_AT_ONCE],
    ['files', FILES_AT_ONCE],
  ])('does not block others: %s', async (_what, limit) => {
    const inFlight = new RequestsInFlight();
    // The parts that a call needs after its client has disconnected.
    const response = { destroyed: true } as ServerResponse;
    let begun = 0;
    const ask = (userId: string) =>
      inFlight
        .run(limit, userId, response, () => {
          begun++;
          return new Promise<never>(() => undefined);
        })
        .catch(() => undefined);
    for (let account = 0; account < 20; account++) {
      for (let count = 0; count < 200; count++) void ask(`greedy ${account}`);
    }
    const byThem = begun;
    expect(byThem).toBeLessThan(limit.total ?? 0);
    void ask('other');
    await new Promise(setImmediate);
    expect(begun).toBe(byThem + 1);
  });

  test('does not block others: log streams', () => {
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

  test('does not block others: chat messages', async () => {
    // As much of them as a question needs.
    const agentOf = (userId: string) => ({
      id: 'a',
      userId,
      host: 'local',
      status: 'active',
      port: 1,
    });
    const directory = { accessTo: () => Promise.resolve({ ask: () => undefined }) };
    const router = { opening: () => ({ requireModel: () => undefined }) };
    const chats = new Chats(
      ...([directory, router] as unknown as ConstructorParameters<typeof Chats>),
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
