import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { gatewayHealth } from '../../../src/docker/containers/gateway-probe.js';

let server: Server | undefined;
let asked: string[] = [];
let connections = 0;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Starts a gateway with these answers by path, and a 404 for every other path. */
async function gateway(answers: Readonly<Record<string, RequestListener>>): Promise<number> {
  asked = [];
  connections = 0;
  const started = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    (answers[path] ?? status(404))(request, response);
  });
  server = started;
  started.on('connection', () => connections++);
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
  return (started.address() as AddressInfo).port; // TCP: always an object
}

const status =
  (code: number, body: unknown = { ok: code === 200, status: 'live' }): RequestListener =>
  (_request, response) => {
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
const silence: RequestListener = () => undefined;
/** Probes with a time limit that only a silent gateway reaches. */
const check = (port: number, timeoutMs = 30_000) => gatewayHealth(port, { timeoutMs });

test('probes both paths of a gateway on one connection', async () => {
  const port = await gateway({ '/healthz': status(200), '/health': status(200) });
  expect(await check(port)).toMatchObject({ healthy: true, status: 200 });
  expect([asked, connections]).toEqual([['/healthz', '/health'], 1]);
});

test.each([
  ['/healthz is not well', { '/healthz': status(503), '/health': status(200) }, 503],
  ['/health is not well', { '/healthz': status(200), '/health': status(503) }, 503],
  [
    '/health says it is not',
    { '/healthz': status(200), '/health': status(200, { ok: false }) },
    200,
  ],
  ['it knows neither', {}, 404],
])('a gateway is not healthy if %s', async (_case, answers, code) => {
  expect(await check(await gateway(answers))).toMatchObject({ healthy: false, status: code });
});

test.each(['/healthz', '/health'])('a gateway is healthy if it has only %s', async (path) => {
  const port = await gateway({ [path]: status(200) });
  expect(await check(port)).toMatchObject({ healthy: true, status: 200 });
});

test.each(['/healthz', '/health'])(
  'both paths share the time limit if %s is silent',
  async (path) => {
    const port = await gateway({
      '/healthz': status(200),
      '/health': status(200),
      [path]: silence,
    });
    const began = performance.now();
    expect(await check(port, 4_000)).toMatchObject({ healthy: false, reachable: false });
    expect(performance.now() - began).toBeLessThan(7_900);
  },
);

test('a gateway that closes its connection after each answer is healthy', async () => {
  const closing: RequestListener = (request, response) => {
    response.setHeader('connection', 'close');
    status(200)(request, response);
  };
  const port = await gateway({ '/healthz': closing, '/health': closing });
  expect(await check(port)).toMatchObject({ healthy: true });
  expect(connections).toBe(2);
});

const OK = JSON.stringify({ ok: true });

test.each<[string, RequestListener]>([
  [
    'leads elsewhere',
    (request, response) => {
      const location = request.url === '/well' ? undefined : '/well';
      response.writeHead(location ? 307 : 200, { ...(location && { location }) }).end(OK);
    },
  ],
  [
    'answers with a page',
    (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(OK),
  ],
  [
    'compresses',
    (_request, response) => {
      const head = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
      response.writeHead(200, head).end(gzipSync(OK));
    },
  ],
  [
    'never ends',
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const write = () => {
        while (!response.destroyed && response.write(' '.repeat(65_536)));
      };
      response.on('drain', write);
      write();
    },
  ],
])('a gateway that %s is not healthy', { tags: 'attack' }, async (_case, answer) => {
  const port = await gateway({ '/healthz': answer, '/health': answer, '/well': status(200) });
  // Well below the probe's time limit, which only a probe that occupies a processor would reach.
  const began = performance.now();
  expect(await gatewayHealth(port, { timeoutMs: 30_000 })).toMatchObject({ healthy: false });
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(asked).not.toContain('/well');
});
