// @module-tag attack
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ask, RUNNING, sendRaw, serveAgents, type AgentAddressLab } from './support.js';

const BYTES = 256 * 1024;

let lab: AgentAddressLab;
beforeAll(async () => {
  lab = await serveAgents((request, response) => {
    void text(request).then((body) => response.end(`[${request.method} ${request.url} ${body}]`));
  });
});
afterAll(() => lab?.close());
beforeEach(() => lab.seen.splice(0));

async function answersTo(lines: readonly string[]): Promise<string> {
  const connection = sendRaw(lab, lines);
  await connection.closed;
  return connection.received();
}

const close = 'Connection: close';
const host = `Host: ${RUNNING}`;

test.each([
  ['two Host headers', ['GET / HTTP/1.1', host, 'Host: localhost', close]],
  ['the address of another server', [`GET http://localhost/ HTTP/1.1`, host, close]],
  ['no path', ['OPTIONS * HTTP/1.1', host, close]],
  ['a method that reflects headers', ['TRACE / HTTP/1.1', host, close]],
  ['two lengths', ['POST / HTTP/1.1', host, 'Content-Length: 3', 'Content-Length: 4', close]],
  [
    'a length and an encoding',
    ['POST / HTTP/1.1', host, 'Content-Length: 3', 'Transfer-Encoding: chunked', close],
  ],
  ['an encoding that hides', ['POST / HTTP/1.1', host, 'Transfer-Encoding: xchunked', close]],
  ['a space before the colon', ['GET / HTTP/1.1', host, 'Transfer-Encoding : chunked', close]],
])('refuses a request with %s', async (_case, lines) => {
  expect(await answersTo(lines)).toMatch(/^HTTP\/1\.1 400 /);
  expect(lab.seen).toHaveLength(0);
});

test.each([
  '/api/v1/admin/rpc',
  '/api/v1//ADMIN/rpc?a=1',
  '/api/v1/%61dmin/rpc',
  '/api/v1/%2561dmin/rpc',
  '/x/../api/v1/admin/rpc',
  '/api\\v1\\admin\\rpc',
  '/api/v1/admin%',
])("serves OpenClaw's administration at no spelling of its path: %s", async (path) => {
  const lines = [`POST ${path} HTTP/1.1`, host, 'Content-Length: 0', close];
  expect(await answersTo(lines)).toMatch(/^HTTP\/1\.1 404 /);
  expect(lab.seen).toHaveLength(0);
});

test('keeps the bounds of a body of any method, so that no second request hides in it', async () => {
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n';
  const chunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
  for (const method of ['GET', 'DELETE', 'POST']) {
    const lines = [
      `${method} /seen HTTP/1.1`,
      host,
      'Transfer-Encoding: chunked',
      close,
      '',
      chunk,
    ];
    expect(await answersTo(lines)).toContain(`[${method} /seen ${hidden}]`);
  }
  expect(lab.seen.map(({ url }) => url)).toEqual(['/seen', '/seen', '/seen']);
});

test('never lets a body choose what the connection to the gateway carries next', async () => {
  const lines = [
    'POST /first HTTP/1.1',
    host,
    'Content-Length: 5',
    '',
    'helloGET /second HTTP/1.1',
  ];
  expect(await answersTo([...lines, 'Host: localhost', close])).toContain('[POST /first hello]');
  expect(lab.seen.map(({ url }) => url)).toEqual(['/first']);
});

test('ends an answer that its client does not read, and frees its place', async () => {
  const flood = await serveAgents((_, response) => response.end(Buffer.alloc(64 * BYTES)), {
    ofAgent: 1,
    ofClient: 1,
    idleMs: 200,
  });
  const slow = sendRaw(flood, ['GET / HTTP/1.1', host]);
  await once(slow.socket, 'connect');
  slow.socket.pause();
  await expect.poll(async () => (await ask(flood, { host: RUNNING })).status).toBe(503);
  await expect.poll(async () => (await ask(flood, { host: RUNNING })).status).toBe(200);
  slow.socket.destroy();
  await flood.close();
});

test("keeps one agent's bytes to its pace, while the API answers at once", async () => {
  const fast = await serveAgents((_, response) => response.end(Buffer.alloc(2 * BYTES)), {
    bytesPerSecond: BYTES,
  });
  const begun = performance.now();
  let isRead = false;
  const reading = ask(fast, { host: RUNNING }).then(() => (isRead = true));
  expect((await fast.listener.call('/health')).status).toBe(200);
  expect(isRead).toBe(false);
  await reading;
  expect(performance.now() - begun).toBeGreaterThan(700);
  await fast.close();
});

test("counts an agent's requests in the limit of their address", async () => {
  const limited = await serveAgents((_, response) => response.end(), undefined, 60);
  const statuses = new Set<number | undefined>();
  for (let sent = 0; sent <= 60; sent++) {
    statuses.add((await ask(limited, { host: RUNNING })).status);
  }
  expect([...statuses]).toEqual([200, 429]);
  await limited.close();
});
