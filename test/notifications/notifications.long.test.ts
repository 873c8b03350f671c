import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { NotificationChannelName } from '../../src/platform/database/models.js';
import { loadSettings } from '../../src/settings.js';
import { configuredChannels } from '../../src/notifications/configured-channels.js';
import type { Notification } from '../../src/types/notification.js';
import { NO_AGENT } from '../../src/notifications/outbox.js';
import { Notifier } from '../../src/notifications/notifier.js';
import { newUser, testDatabase, type TestDatabase } from '../support/postgres.js';
import {
  BOT_TOKEN,
  CHAT_ID,
  discordLimits,
  serverError,
  startChannelStubs,
  telegramLimits,
  telegramRefuses,
  type ChannelStubs,
} from './channel-stub.js';

const OPERATOR = 'operator';

let database: TestDatabase;
let stubs: ChannelStubs;

beforeAll(async () => {
  database = await testDatabase();
  stubs = await startChannelStubs();
});
beforeEach(async () => {
  for (const stub of [stubs.telegram, stubs.discord]) {
    stub.behave();
    stub.received.length = 0;
  }
  await sql('DELETE FROM notifications');
});
afterAll(async () => {
  await stubs?.close();
  await database?.close();
});

const sql = (statement: string) => database.db.asPlatform().query(statement);

/** Moves all stored times into the past. */
const timePasses = (seconds: number) =>
  sql(
    ['created_at', 'due_at', 'attempted_at', 'settled_at']
      .map((column) => `${column} = ${column} - interval '${seconds} seconds'`)
      .join(', ')
      .replace(/^/, 'UPDATE notifications SET '),
  );

async function newAgent(
  name = `agent ${randomUUID()}`,
  userId = OPERATOR,
): Promise<Notification['agent']> {
  const id = randomUUID();
  await database.db.asUser(userId).transaction((db) =>
    db.Agent.create({
      id,
      userId,
      name,
      subdomain: id,
      plan: 'network',
      model: 'gpt-4',
      aiProvider: 'openai',
    }),
  );
  return { agentId: id, userId };
}

/** Creates a worker with its own memory; two of them act as two processes. */
function newWorker(environment: Record<string, string | undefined> = {}) {
  const settings = loadSettings({
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
    TELEGRAM_BOT_TOKEN: BOT_TOKEN,
    TELEGRAM_ADMIN_CHAT_ID: CHAT_ID,
    TELEGRAM_API_URL: stubs.telegramUrl,
    DISCORD_WEBHOOK_URL: stubs.discordUrl,
    ...environment,
  });
  const notifier = new Notifier(database.db, configuredChannels(settings.notifications));
  return async (notification: Notification): Promise<Notified> => {
    const deliveries = await notifier.notify(notification);
    const waits = deliveries.flatMap((each) => (each.outcome === 'waiting' ? [each.delayMs] : []));
    if (waits.length > 0) throw new Waiting(Math.min(...waits));
    return Object.fromEntries(deliveries.map(({ channel, outcome }) => [channel, outcome]));
  };
}

/** Outcome by channel. */
type Notified = Partial<Record<NotificationChannelName, string>>;

/** Thrown when a channel must wait. */
class Waiting extends Error {
  override readonly name = 'Waiting';

  constructor(readonly delayMs: number) {
    super('A channel must wait');
  }
}

const onlyDiscord = { TELEGRAM_BOT_TOKEN: undefined };
const degraded = (agent: Notification['agent']): Notification => ({
  id: randomUUID(),
  agent,
  event: 'degraded',
});

/** Returns the milliseconds until the next attempt. */
async function waitOf(work: Promise<unknown>): Promise<number> {
  const failure: unknown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure instanceof Waiting) return failure.delayMs;
  throw new Error(`expected a wait, got: ${inspect(failure)}`);
}

const texts = () => stubs.telegram.received.map(({ body }) => body.text as string);
/** Returns the Discord messages without their Markdown escapes. */
const contents = () =>
  stubs.discord.received.map(({ body }) => (body.content as string).replace(/\\([^\w\s])/g, '$1'));

describe('notification', () => {
  test("sends a notification with the agent's stored data to every configured channel", async () => {
    const agent = await newAgent('first\n  agent');
    await sql(
      `UPDATE agents SET status_reason = 'It\n did not   answer' WHERE id = '${agent.agentId}'`,
    );
    const notify = newWorker();
    expect(await notify(degraded(agent))).toEqual({ telegram: 'sent', discord: 'sent' });
    expect(texts()).toEqual([
      'Agent "first agent" is degraded: its gateway does not answer correctly.\n' +
        'Reason: It did not answer\n' +
        `Agent ${agent.agentId} of user operator on host local`,
    ]);
    expect(contents()).toEqual(texts());
  });

  test.each([
    [{ event: 'repair_attempt', attempt: 1, maxAttempts: 2 }, 'is being repaired: attempt 1 of 2.'],
    [{ event: 'crash_loop', crashes: 3 }, 'is in a crash loop after 3 crashes, and stays down'],
    [{ event: 'crash_loop', crashes: 0 }, 'is in a crash loop, and stays down'],
  ] as const)('describes the event (%#)', async (event, said) => {
    await newWorker(onlyDiscord)({ id: randomUUID(), agent: await newAgent(), ...event });
    expect(contents()).toEqual([expect.stringContaining(said)]);
  });

  test('sends nothing without a completely configured channel', async () => {
    const notify = newWorker({
      TELEGRAM_ADMIN_CHAT_ID: undefined,
      DISCORD_WEBHOOK_URL: undefined,
    });
    expect(await notify(degraded(await newAgent()))).toEqual({});
    expect([texts(), contents()]).toEqual([[], []]);
    expect(await sql('SELECT * FROM notifications')).toEqual([]);
  });

  test('sends nothing about an agent that is deleted or being removed', async () => {
    const agent = await newAgent();
    await sql(`UPDATE agents SET desired = 'deleted' WHERE id = '${agent.agentId}'`);
    expect(await newWorker()(degraded(agent))).toEqual({});
    expect(await newWorker()(degraded({ ...agent, agentId: 'nobody' }))).toEqual({});
    expect(texts()).toEqual([]);
  });
});

describe('repeated notification', () => {
  test('does not send a notification twice, even from another worker', async () => {
    const notification = degraded(await newAgent());
    for (const notify of [newWorker(), newWorker()]) {
      expect(await notify(notification)).toEqual({ telegram: 'sent', discord: 'sent' });
    }
    expect([texts().length, contents().length]).toEqual([1, 1]);
  });

  test('resends after a killed worker only on channels without a recorded result', async () => {
    const notification = degraded(await newAgent());
    await newWorker()(notification);
    // Simulates a worker killed between Telegram's answer and its record.
    await sql(`UPDATE notifications SET status = 'sending' WHERE channel = 'telegram'`);
    expect(await newWorker()(notification)).toEqual({ telegram: 'sent', discord: 'sent' });
    expect([texts().length, contents().length]).toEqual([2, 1]);
  });

  test('sends the same event of an agent at most once a minute', async () => {
    const agent = await newAgent();
    const notify = newWorker(onlyDiscord);
    expect(await notify(degraded(agent))).toEqual({ discord: 'sent' });
    const again = degraded(agent);
    expect(await notify(again)).toEqual({ discord: 'repeated' });
    await timePasses(61);
    expect(await notify(again)).toEqual({ discord: 'repeated' });
    expect(await notify(degraded(agent))).toEqual({ discord: 'sent' });
    expect(await notify(degraded(await newAgent()))).toEqual({ discord: 'sent' });
    expect(contents()).toHaveLength(3);
  });

  test('sends events of different payments, wallets and chains separately', async () => {
    const notify = newWorker(onlyDiscord);
    const [signer, other] = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`] as const;
    const gap = { event: 'nonces_missing', chainId: 1, signer, from: '3', until: '6' } as const;
    const fees = { event: 'fees_unpayable', chainId: 1, payer: signer } as const;
    const tooHigh = { event: 'fees_too_high', chainId: 1, limit: 'unit', fee: '9' } as const;
    const failed = (paymentId: string) =>
      ({ event: 'payment_failed', paymentId, cause: 'split:7:1:0', failure: 'reverted' }) as const;
    for (const event of [
      ...[failed('one'), failed('other'), gap, { ...gap, chainId: 2, until: '4' }],
      ...[fees, { ...fees, payer: other }],
      { event: 'granted_credits_used_up', day: '2026-01-01', limit: '20.000000' } as const,
      ...[tooHigh, { ...tooHigh, chainId: 2, limit: 'transaction' } as const],
      { event: 'gas_spent', limit: 7 } as const,
      { event: 'x402_payments_used_up', day: '2026-01-02', limit: '9.000000' } as const,
      { event: 'videos_used_up', day: '2026-01-02', limit: 5 } as const,
    ]) {
      const notification = { id: randomUUID(), agent: NO_AGENT, ...event };
      expect(await notify(notification)).toEqual({ discord: 'sent' });
      const again = { ...notification, id: randomUUID() };
      expect(await notify(again)).toEqual({ discord: 'repeated' });
    }
    const reported = contents().join('\n');
    for (const part of [
      'payment one for split:7:1:0 was not made: its transaction was reverted on chain',
      `Nonces 3 to 5 of ${signer} went missing on chain 1`,
      `Nonce 3 of ${signer} went missing on chain 2`,
      `${other} has no balance left for fees on chain 1`,
      'Payments by the x402 gateway on 2026-01-02 (UTC) have reached their limit for all users: 9.000000 US dollars',
      'Referrals have granted as many credits on 2026-01-01 (UTC) as they may: 20.000000 US dollars',
      'A unit of gas on chain 1 would cost 9, more than the maximum',
      'A transaction on chain 2 would cost 9, more than the maximum',
      'The gas of this UTC day is used up: 7 units for all users',
    ]) {
      expect(reported).toContain(part);
    }
  });

  test('sends every crash loop and every repair attempt', async () => {
    const agent = await newAgent();
    const notify = newWorker(onlyDiscord);
    for (const event of [
      { event: 'crash_loop', crashes: 3 },
      { event: 'crash_loop', crashes: 3 },
      { event: 'repair_attempt', attempt: 1, maxAttempts: 2 },
      { event: 'repair_attempt', attempt: 2, maxAttempts: 2 },
    ] as const) {
      expect(await notify({ id: randomUUID(), agent, ...event })).toEqual({ discord: 'sent' });
    }
  });
});

describe('failing channel', () => {
  test('retries a failing channel later without delaying other channels', async () => {
    stubs.telegram.behave(serverError);
    const notification = degraded(await newAgent());
    expect(await waitOf(newWorker()(notification))).toBe(60_000);
    expect(contents()).toHaveLength(1);
    stubs.telegram.behave();
    await timePasses(60);
    expect(await newWorker()(notification)).toEqual({ telegram: 'sent', discord: 'sent' });
    expect([texts().length, contents().length]).toEqual([2, 1]);
  });

  test('waits as long as a rate-limiting channel demands', async () => {
    stubs.telegram.behave(telegramLimits(7));
    stubs.discord.behave(discordLimits(2.5));
    const notification = degraded(await newAgent());
    const notify = newWorker();
    expect(await waitOf(notify(notification))).toBe(2_500);
    stubs.telegram.behave();
    stubs.discord.behave();
    await timePasses(3);
    expect(await waitOf(notify(notification))).toBeLessThanOrEqual(4_000);
    expect([texts().length, contents().length]).toEqual([1, 2]);
    await timePasses(4);
    expect(await notify(notification)).toEqual({ telegram: 'sent', discord: 'sent' });
    expect([texts().length, contents().length]).toEqual([2, 2]);
  });

  test('drops a notification after too many failures and mentions it in the next message', async () => {
    stubs.discord.behave(serverError);
    const notify = newWorker(onlyDiscord);
    const notification = degraded(await newAgent());
    for (let minute = 0; minute < 4; minute++) {
      await waitOf(notify(notification));
      await timePasses(60);
    }
    expect(await notify(notification)).toEqual({ discord: 'dropped' });
    stubs.discord.behave();
    expect(await notify(notification)).toEqual({ discord: 'dropped' });
    expect(await notify(degraded(await newAgent()))).toEqual({ discord: 'sent' });
    expect(contents().at(-1)).toContain('1 notification before this one could not be sent.');
    expect(await notify(degraded(await newAgent()))).toEqual({ discord: 'sent' });
    expect(contents().at(-1)).not.toContain('could not be sent');
  });

  test('drops a refused notification at once', async () => {
    stubs.telegram.behave(telegramRefuses(401, 'Unauthorized'));
    const notified = await newWorker()(degraded(await newAgent()));
    expect(notified).toEqual({ telegram: 'dropped', discord: 'sent' });
  });
});

describe("notifications beyond a channel's rate", () => {
  test('sends 20 notifications a minute across all workers and drops those beyond 5 minutes', async () => {
    const workers = [newWorker(onlyDiscord), newWorker(onlyDiscord)];
    const notifications: Notification[] = [];
    for (let number = 0; number < 125; number++) {
      notifications.push({
        id: randomUUID(),
        agent: await oneAgent(),
        event: 'crash_loop',
        crashes: 3,
      });
    }
    const results = await Promise.allSettled(
      notifications.map(async (notification, number) => workers[number % 2]?.(notification)),
    );
    const sent = results.filter(({ status }) => status === 'fulfilled');
    expect(sent.map((result) => 'value' in result && result.value?.discord).sort()).toEqual([
      ...Array.from({ length: 5 }, () => 'dropped'),
      ...Array.from({ length: 20 }, () => 'sent'),
    ]);
    expect(contents()).toHaveLength(20);

    const waiting = notifications.filter((_, number) => results[number]?.status === 'rejected');
    expect(waiting).toHaveLength(100);
    await timePasses(61);
    const next = await Promise.allSettled(
      waiting.map(async (notification, number) => workers[number % 2]?.(notification)),
    );
    expect(next.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
    expect(contents()).toHaveLength(40);
    expect(contents().filter((text) => text.includes('could not be sent'))).not.toEqual([]);
  });

  test('does not send overdue notifications all at once', async () => {
    const notify = newWorker(onlyDiscord);
    const waiting: Notification[] = [];
    for (let number = 0; number < 60; number++) {
      const notification: Notification = {
        id: randomUUID(),
        agent: await oneAgent(),
        event: 'crash_loop',
        crashes: 3,
      };
      await notify(notification).catch(() => waiting.push(notification));
    }
    expect(waiting).toHaveLength(40);
    await timePasses(180);
    const late = await Promise.allSettled(waiting.map(notify));
    expect(late.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
    expect(contents()).toHaveLength(40);
  });

  test('does not delay other owners during a flood of one owner', { tags: 'attack' }, async () => {
    const notify = newWorker(onlyDiscord);
    const loop = (agent: Notification['agent']) =>
      ({ id: randomUUID(), agent, event: 'crash_loop', crashes: 3 }) as const;
    const flooding = await newAgent('flooding', await newUser(database));
    const flood = Array.from({ length: 130 }, () => loop(flooding));
    await Promise.allSettled(flood.map(notify));
    // All places of the next five minutes are occupied.
    const others = [loop(await oneAgent()), loop(await oneAgent())];
    for (const other of others) {
      await expect(notify(other)).rejects.toSatisfy(
        (error) => error instanceof Waiting && error.delayMs <= 60_000,
      );
    }
    await timePasses(61);
    const reported = await Promise.allSettled([...flood, ...others].map(notify));
    const sentNow = reported.filter(({ status }) => status === 'fulfilled').slice(-2);
    expect(sentNow).toMatchObject([{ value: { discord: 'sent' } }, { value: { discord: 'sent' } }]);
  });

  let shared: Promise<Notification['agent']> | undefined;
  const oneAgent = () => (shared ??= newAgent());
});

test('removes records of notifications after 30 days', async () => {
  const notify = newWorker(onlyDiscord);
  await notify(degraded(await newAgent()));
  await timePasses(31 * 24 * 60 * 60);
  await notify(degraded(await newAgent()));
  expect(await sql('SELECT * FROM notifications')).toHaveLength(1);
});
