// @module-tag attack
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { gatewayFailures, gatewayReady } from '../../../src/docker/containers/gateway-probe.js';
import { sendJson } from '../../support/provider-stub.js';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

type Answers = Readonly<Record<string, readonly [status: number, body: object]>>;

/** Starts a gateway with these answers, and 404 elsewhere. Returns its port. */
async function gateway(answers: Answers): Promise<number> {
  server = createServer((request, response) => {
    const [status, body] = answers[request.url ?? ''] ?? [404, {}];
    sendJson(response, status, body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port; // never a path for a TCP listener
}

const bounds = { timeoutMs: 5_000, token: 'token' };
const rejected: Answers['/readyz'] = [503, { ready: false, failing: ['telegram', 7] }];

test('a channel that cannot sign in keeps no agent with channels from being ready', async () => {
  const port = await gateway({ '/readyz': rejected, '/startupz': [200, { ok: true }] });
  expect(await gatewayReady(port, { ...bounds, hasChannels: true })).toMatchObject({ ready: true });
  expect(await gatewayReady(port, bounds)).toMatchObject({ ready: false, status: 503 });
});

test.each([
  [503, { ok: false, status: 'starting' }],
  [503, { ok: false, status: 'draining' }],
  [200, { ok: false }],
])('an agent with channels is not ready with %d %j', async (status, body) => {
  const port = await gateway({ '/readyz': [200, { ready: true }], '/startupz': [status, body] });
  expect((await gatewayReady(port, { ...bounds, hasChannels: true })).ready).toBe(false);
});

test('an image without `/startupz` is ready by `/readyz`', async () => {
  const port = await gateway({ '/readyz': [200, { ready: true }] });
  expect((await gatewayReady(port, { ...bounds, hasChannels: true })).ready).toBe(true);
});

test('lists the failing parts of a runtime', async () => {
  expect(await gatewayFailures(await gateway({ '/readyz': rejected }), bounds)).toEqual([
    'telegram',
  ]);
});

test.each([
  [404, {}],
  [200, { ready: true }],
  [503, { failing: 'telegram' }],
])('a runtime that answers %d %j does not report what fails', async (status, body) => {
  const port = await gateway({ '/readyz': [status, body] });
  expect(await gatewayFailures(port, bounds)).toBeUndefined();
});
