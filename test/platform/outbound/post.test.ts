import { once } from 'node:events';
import http, { type RequestListener } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { allowedDestinations } from '../../../src/platform/outbound/allowed-places.js';
import type { Connect } from '../../../src/platform/outbound/connect.js';
import { OutboundClient, type OutboundPost } from '../../../src/platform/outbound/outbound.js';
import { FORGED_HOSTS, FORGED_URLS, LYING_ANSWERS } from './forged.js';

let answer: (...request: Parameters<RequestListener>) => unknown;
const server = http.createServer((request, response) => answer(request, response));
let port: number;
let here: string;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  here = `http://127.0.0.1:${port}/hook`;
});
afterEach(() => server.closeAllConnections());
afterAll(() => new Promise((resolve) => server.close(resolve)));

const POST: OutboundPost = {
  headers: { 'content-type': 'application/json', 'x-mark': 'seen' },
  body: '{"a":"ä"}',
  signal: new AbortController().signal,
};

const reached: unknown[] = [];
const nowhere: Connect = (to) => {
  reached.push(to);
  return new net.Socket().destroy(new Error('nowhere'));
};

const client = () => new OutboundClient({ allow: allowedDestinations.parse(`127.0.0.1:${port}`) });

const codeOf = (posting: Promise<unknown>) =>
  posting.then(
    () => 'posted',
    (error: { code?: string; message?: string }) => error.code ?? error.message,
  );

test('posts the body with its headers and its length', async () => {
  const seen: unknown[] = [];
  answer = async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { 'content-length': length, 'x-mark': mark, host } = request.headers;
    seen.push([request.method, request.url, host, length, mark, Buffer.concat(pieces).toString()]);
    response.writeHead(204).end();
  };
  expect(await client().post(here, POST)).toEqual({ status: 204, body: Buffer.alloc(0) });
  expect(seen).toEqual([['POST', '/hook', `127.0.0.1:${port}`, '10', 'seen', POST.body]]);
});

test.each([200, 302, 308, 410, 500])(
  'returns the answer of status %i without following it',
  async (status) => {
    let requests = 0;
    answer = (_request, response) => {
      requests++;
      response.writeHead(status, { location: '/there' }).end('body');
    };
    const { body, status: answered } = await client().post(here, POST);
    expect([answered, body.toString(), requests]).toEqual([status, 'body', 1]);
  },
);

test('reads at most 64 kB of an endless answer', async () => {
  answer = (_request, response) => {
    const more = setInterval(() => response.write(Buffer.alloc(32 * 1024, 'a')), 1);
    response.on('close', () => clearInterval(more));
  };
  const { body, status } = await client().post(here, POST);
  expect([status, body.length]).toEqual([200, 64 * 1024]);
});

test('returns the status of an answer whose body breaks', async () => {
  answer = (_request, response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('begun', () => response.destroy());
  };
  expect(await client().post(here, POST)).toMatchObject({ status: 200 });
});

test("ends with the caller's signal", async () => {
  answer = () => undefined;
  const stop = new AbortController();
  const posting = client().post(here, { ...POST, signal: stop.signal });
  stop.abort(new Error('stopped'));
  expect(await codeOf(posting)).toBe('stopped');
});

test('fails 10 seconds after its admission', { timeout: 20_000 }, async () => {
  answer = () => undefined;
  let isFreed = false;
  const admit = () => Promise.resolve(() => void (isFreed = true));
  const since = performance.now();
  expect(await codeOf(client().post(here, { ...POST, admit }))).toBe('TIMEOUT');
  expect(Math.round((performance.now() - since) / 1_000)).toBe(10);
  expect(isFreed).toBe(true);
});

describe('non-public addresses', { tags: 'attack' }, () => {
  const refusals = ['URL_NOT_ALLOWED', 'INVALID_URL'];
  afterEach(() => expect(reached.splice(0)).toEqual([]));

  test.each([...FORGED_HOSTS.map((host) => `http://${host}/`), ...FORGED_URLS])(
    'refuses to post to %j before a connection',
    async (url) => {
      const refusing = new OutboundClient({ connect: nowhere });
      expect(refusals).toContain(await codeOf(refusing.post(url, POST)));
    },
  );

  test.each(LYING_ANSWERS.map((addresses) => [addresses.join(', '), addresses] as const))(
    'refuses to post to a name that resolves to %s',
    async (_text, addresses) => {
      const resolve = () => Promise.resolve(addresses);
      const refusing = new OutboundClient({ connect: nowhere, resolve });
      expect(await codeOf(refusing.post('http://name.test/', POST))).toBe('URL_NOT_ALLOWED');
    },
  );
});
