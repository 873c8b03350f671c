import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { sendJson } from '../support/provider-stub.js';

export const BOT_TOKEN = '123456:telegram-secret-of-this-test';
export const CHAT_ID = '-1001234567890';
export const WEBHOOK_TOKEN = 'discord-secret-of-this-test';

export interface ReceivedMessage {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly contentType: string | undefined;
  readonly body: ReturnType<typeof JSON.parse>;
}

type Behaviour = (response: ServerResponse) => void;

/** A stub of Telegram or Discord on loopback. */
export interface ChannelStub {
  readonly received: ReceivedMessage[];
  /** Sets the response to the next requests; without an argument, messages are accepted. */
  behave(behaviour?: Behaviour): void;
}

/** Stubs of Telegram's bot API and Discord's webhooks. */
export interface ChannelStubs {
  readonly telegram: ChannelStub;
  readonly discord: ChannelStub;
  /** Values for `TELEGRAM_API_URL` and `DISCORD_WEBHOOK_URL`. */
  readonly telegramUrl: string;
  readonly discordUrl: string;
  close(): Promise<void>;
}

export const telegramTakes: Behaviour = (response) =>
  sendJson(response, 200, { ok: true, result: { message_id: 1, date: 1_700_000_000, text: '' } });
export const telegramLimits =
  (seconds: number): Behaviour =>
  (response) =>
    sendJson(response, 429, {
      ok: false,
      error_code: 429,
      description: `Too Many Requests: retry after ${seconds}`,
      parameters: { retry_after: seconds },
    });
export const telegramRefuses = (code: number, description: string): Behaviour => {
  return (response) => sendJson(response, code, { ok: false, error_code: code, description });
};

export const discordTakes: Behaviour = (response) =>
  sendJson(response, 200, { id: '1', type: 0, content: '', channel_id: '2', webhook_id: '3' });
export const discordLimits =
  (seconds: number): Behaviour =>
  (response) => {
    response.setHeader('retry-after', String(Math.ceil(seconds)));
    sendJson(response, 429, {
      message: 'You are being rate limited.',
      retry_after: seconds,
      global: false,
    });
  };

export const serverError: Behaviour = (response) => {
  response.writeHead(502, { 'content-type': 'text/html' });
  response.end('<h1>Bad Gateway</h1>');
};
export const silence: Behaviour = () => undefined;

export async function startChannelStubs(): Promise<ChannelStubs> {
  const telegram = service(telegramTakes);
  const discord = service(discordTakes);
  const server = createServer((incoming, response) => {
    const isTelegram = incoming.url?.startsWith('/bot') === true;
    void (isTelegram ? telegram : discord).take(incoming, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // A TCP address is never a string.
  return {
    telegram,
    discord,
    telegramUrl: `http://127.0.0.1:${port}`,
    discordUrl: `http://127.0.0.1:${port}/api/webhooks/42/${WEBHOOK_TOKEN}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function service(takes: Behaviour) {
  const received: ReceivedMessage[] = [];
  let behaviour = takes;
  return {
    received,
    behave: (next = takes) => (behaviour = next),
    async take(incoming: IncomingMessage, response: ServerResponse) {
      let text = '';
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      await once(incoming, 'end');
      const { method, url, headers } = incoming;
      const contentType = headers['content-type'];
      received.push({ method, url, contentType, body: JSON.parse(text) });
      behaviour(response);
    },
  };
}
