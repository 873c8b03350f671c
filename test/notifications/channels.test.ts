// @module-tag attack
import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ChannelError } from '../../src/notifications/channel.js';
import { discordChannel } from '../../src/notifications/discord.js';
import { telegramChannel } from '../../src/notifications/telegram.js';
import {
  BOT_TOKEN,
  CHAT_ID,
  WEBHOOK_TOKEN,
  discordLimits,
  serverError,
  silence,
  startChannelStubs,
  telegramLimits,
  telegramRefuses,
  type ChannelStubs,
} from './channel-stub.js';

/** Milliseconds; enough for loopback, and short for a test. */
const TIMEOUT_MS = 2_000;

const MAY_BE_TRIED_AGAIN = { name: 'ChannelError', retryAfterMs: 60_000 };

const refused = (channel: 'telegram' | 'discord', status: number) =>
  new ChannelError(channel, `refused the message with status ${status}`, undefined);

let stubs: ChannelStubs;
beforeAll(async () => {
  stubs = await startChannelStubs();
});
beforeEach(() => {
  for (const stub of [stubs.telegram, stubs.discord]) {
    stub.behave();
    stub.received.length = 0;
  }
});
afterAll(() => stubs?.close());

const telegram = (apiUrl = stubs.telegramUrl) =>
  telegramChannel({ apiUrl, botToken: BOT_TOKEN, chatId: CHAT_ID }, TIMEOUT_MS);
const discord = (url = stubs.discordUrl) => discordChannel(url, TIMEOUT_MS);

async function failureOf(work: Promise<void>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('Telegram', () => {
  test('sends plain text to the Telegram chat', async () => {
    await telegram().send('Agent "*a*" is <b>degraded</b>');
    expect(stubs.telegram.received).toEqual([
      {
        method: 'POST',
        url: `/bot${BOT_TOKEN}/sendMessage`,
        contentType: 'application/json',
        body: {
          chat_id: CHAT_ID,
          text: 'Agent "*a*" is <b>degraded</b>',
          // Telegram makes no links inside a `pre` entity.
          entities: [{ type: 'pre', offset: 0, length: 30 }],
          link_preview_options: { is_disabled: true },
        },
      },
    ]);
  });

  test('shortens a Telegram message to 4096 characters without splitting the last', async () => {
    await telegram().send('🚀'.repeat(5_000));
    const { text } = stubs.telegram.received[0]?.body ?? {};
    expect(text.length).toBeLessThanOrEqual(4096);
    expect(text).toMatch(/^(🚀)+…$/u);
  });

  test("passes on Telegram's retry delay", async () => {
    stubs.telegram.behave(telegramLimits(17));
    const failure = await failureOf(telegram().send('x'));
    expect(failure).toBeInstanceOf(ChannelError);
    expect(failure).toMatchObject({ retryAfterMs: 17_000 });
  });

  test.each([
    [400, 'Bad Request: chat not found'],
    [401, 'Unauthorized'],
    [403, 'Forbidden: bot was blocked by the user'],
  ])("treats Telegram's answer %d as a permanent failure", async (code, description) => {
    stubs.telegram.behave(telegramRefuses(code, description));
    expect(await failureOf(telegram().send('x'))).toEqual(refused('telegram', code));
  });

  test('allows a retry after a server error of Telegram', async () => {
    stubs.telegram.behave(serverError);
    const failure = await failureOf(telegram().send('x'));
    expect(failure).toEqual(new ChannelError('telegram', 'answered with 502', 60_000));
  });
});

describe('Discord', () => {
  test('sends Discord content without mentions or formatting, and requests a confirmation', async () => {
    await discord().send('Agent "@everyone [x](http://x)" is *degraded*');
    expect(stubs.discord.received).toEqual([
      {
        method: 'POST',
        url: `/api/webhooks/42/${WEBHOOK_TOKEN}?wait=true`,
        contentType: 'application/json',
        body: {
          content: 'Agent "@everyone \\[x\\]\\(http\\://x\\)" is \\*degraded\\*',
          allowed_mentions: { parse: [] },
          flags: 4,
        },
      },
    ]);
  });

  test('keeps the thread of a Discord webhook URL and accepts a 204', async () => {
    stubs.discord.behave((response) => response.writeHead(204).end());
    await discord(`${stubs.discordUrl}?thread_id=7`).send('x');
    expect(stubs.discord.received[0]?.url).toMatch(/\?thread_id=7&wait=true$/);
  });

  test('shortens a Discord message to 2000 characters', async () => {
    await discord().send('*'.repeat(5_000));
    expect(stubs.discord.received[0]?.body.content).toHaveLength(2000);
  });

  test("passes on Discord's retry delay from the body or the header", async () => {
    stubs.discord.behave(discordLimits(1.337));
    expect(await failureOf(discord().send('x'))).toMatchObject({ retryAfterMs: 1_337 });
    stubs.discord.behave((response) => response.writeHead(429, { 'retry-after': '9' }).end());
    const failure = await failureOf(discord().send('x'));
    expect(failure).toBeInstanceOf(ChannelError);
    expect(failure).toMatchObject({ retryAfterMs: 9_000 });
  });

  test('treats a deleted Discord webhook as a permanent failure', async () => {
    stubs.discord.behave((response) => response.writeHead(404).end('{"code": 10015}'));
    expect(await failureOf(discord().send('x'))).toEqual(refused('discord', 404));
  });

  test('follows no redirect from Discord', async () => {
    stubs.discord.behave((response) =>
      response.writeHead(307, { location: `${stubs.telegramUrl}/bot` }).end(),
    );
    expect(await failureOf(discord().send('x'))).toEqual(refused('discord', 307));
    expect(stubs.telegram.received).toEqual([]);
  });
});

describe.each([
  ['Telegram', () => telegram(), () => telegram('http://127.0.0.1:1'), () => stubs.telegram],
  [
    'Discord',
    () => discord(),
    () => discord(`http://127.0.0.1:1/api/webhooks/42/${WEBHOOK_TOKEN}`),
    () => stubs.discord,
  ],
])('%s', (_name, channel, nowhere, stub) => {
  test('times out when the channel does not answer', async () => {
    stub().behave(silence);
    expect(await failureOf(channel().send('x'))).toMatchObject(MAY_BE_TRIED_AGAIN);
  });

  test('stops reading an endless answer of the channel', async () => {
    stub().behave((response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('x'.repeat(1024 * 1024));
    });
    expect(await failureOf(channel().send('x'))).toMatchObject(MAY_BE_TRIED_AGAIN);
  });

  test("keeps the channel's secret out of errors", async () => {
    const failures = [await failureOf(nowhere().send('x'))];
    for (const behaviour of [
      serverError,
      telegramLimits(1),
      telegramRefuses(404, `bot${BOT_TOKEN} and ${WEBHOOK_TOKEN}`),
    ]) {
      stub().behave(behaviour);
      failures.push(await failureOf(channel().send('x')));
    }
    expect(failures.every((failure) => failure instanceof Error)).toBe(true);
    const reported = inspect(failures, { depth: 10 });
    expect(reported).not.toContain('secret-of-this-test');
  });
});
