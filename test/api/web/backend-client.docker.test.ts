import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import {
  agentArchives,
  PLAIN_OPERATIONS,
  runtimeInstances,
  updateAgent,
} from '../../../api/backend/contract.js';
import { BackendClient } from '../../../api/web/backend-client.js';
import { forwarder } from '../../../api/web/forward.js';
import { LIMITS } from '../../../api/web/limits.js';
import { BadGatewayError } from '../../../src/lib/errors.js';
import { StillRunningError } from '../../../src/platform/idempotency/idempotency-store.js';
import { ADA, bearer, INTERNAL_KEY, serve, signedIn, type TestListener } from '../http/support.js';

const ON = {
  caller: {
    kind: 'session',
    sessionId: 's',
    signedInAt: new Date(0),
    user: ADA,
    csrfToken: '',
    plan: undefined,
  },
  clientAddress: '192.0.2.1',
  requestId: 'r',
  idempotencyId: 'i',
} as const;

const INSTANCE = {
  id: 'a1',
  containerId: 'c1',
  userId: 'ada',
  status: 'running',
  image: 'agent:1',
  createdAt: '2026-01-01T00:00:00.000Z',
  stats: null,
};
const NEWER = { region: 'eu', zones: [{ name: 'a' }] };

let backend: Server | undefined;
let listener: TestListener | undefined;

afterEach(async () => {
  await listener?.close();
  backend?.close();
});

/** Starts a backend that sends this answer to every request. */
const answering = (
  body: unknown,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): Promise<BackendClient> =>
  serving((_request, response) => {
    response.writeHead(status, { connection: 'close', ...headers }).end(JSON.stringify(body));
  });

async function serving(listener: RequestListener): Promise<BackendClient> {
  const server = createServer(listener);
  backend = server;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // never a string for a TCP listener
  return new BackendClient(`http://127.0.0.1:${port}`, 'key');
}

test('ignores unknown fields of a newer backend at any depth', async () => {
  const client = await answering({
    ...NEWER,
    count: 2,
    instances: [INSTANCE, { ...INSTANCE, ...NEWER }],
  });
  const answer = await client.call(ON, runtimeInstances, {});
  expect(answer).toEqual({ count: 2, instances: [INSTANCE, INSTANCE] });
});

test('rejects a response with a missing field', async () => {
  const { image: _image, ...without } = INSTANCE;
  const client = await answering({ ...NEWER, count: 1, instances: [{ ...without, ...NEWER }] });
  await expect(client.call(ON, runtimeInstances, {})).rejects.toThrow(BadGatewayError);
});

test('passes on that the first request is still running, with Retry-After', async () => {
  const busy = { error: 'A request with this Idempotency-Key is still running: retry later' };
  const client = await answering(busy, { status: 409, headers: { 'retry-after': '7' } });
  const refused = client.call(ON, runtimeInstances, {});
  await expect(refused).rejects.toThrow(StillRunningError);
  await expect(refused).rejects.toMatchObject({ status: 409, message: busy.error, retryAfter: 7 });
});

test("passes on the backend's rate limit headers and Retry-After", async () => {
  const limited = {
    'ratelimit-limit': '5',
    'ratelimit-remaining': '0',
    'ratelimit-reset': '42',
    'retry-after': '42',
  };
  const refusal = { error: 'Deployment rate limit exceeded.' };
  const client = await answering(refusal, { status: 429, headers: limited });
  const forward = forwarder(client, { keyScope: 'any', limit: LIMITS.agents });
  listener = await serve([forward(agentArchives)]);
  const response = await listener.call('/api/agents/a1/archives', { headers: signedIn });
  expect([response.status, await response.json()]).toEqual([429, refusal]);
  expect(Object.fromEntries(response.headers)).toMatchObject(limited);
});

test('forwards only the fields that this version declares', async () => {
  const client = await answering({ ...NEWER, archives: [] });
  const forward = forwarder(client, { keyScope: 'any', limit: LIMITS.agents });
  listener = await serve([forward(agentArchives)]);
  const response = await listener.call('/api/agents/a1/archives', { headers: signedIn });
  expect([response.status, await response.json()]).toEqual([200, { archives: [] }]);
});

test('reports an unreachable backend or a broken connection as unavailable', async () => {
  const unavailable = new BadGatewayError('The backend is unavailable: retry later');
  const nobody = new BackendClient('http://127.0.0.1:1', 'key');
  await expect(nobody.call(ON, runtimeInstances, {})).rejects.toThrow(unavailable);
  const breaksOff = await serving((_request, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('{', () => response.destroy());
  });
  await expect(breaksOff.call(ON, runtimeInstances, {})).rejects.toThrow(unavailable);
});

test('does not blame the backend for a request that cannot be built', async () => {
  const client = await answering({});
  const body = { config: { much: 1n } };
  const call = client.call(ON, updateAgent, { params: { id: 'a1' }, body });
  await expect(call).rejects.not.toThrow(BadGatewayError);
  const [plain] = PLAIN_OPERATIONS;
  const tooPrecise = { params: { id: 'a1' }, query: { wait: 25.0049 } };
  const waiting = client.forward(ON, plain!.declared, tooPrecise);
  await expect(waiting).rejects.not.toThrow(BadGatewayError);
});

test.each(['25.0049', '0x10', '1e1', '-1', '61', '', ' 5', 'soon', '999999999999'])(
  'both listeners refuse a wait of "%s" without a backend request',
  async (wait) => {
    const [plain] = PLAIN_OPERATIONS;
    const { declared } = plain!;
    const client = await serving(() => expect.unreachable());
    const forward = forwarder(client, { keyScope: 'any', limit: LIMITS.agents });
    const path = `/api/agents/a1/${plain!.kind}?wait=${encodeURIComponent(wait)}`;
    const asked = [
      [forward(declared), signedIn],
      [declared.handledBy(() => expect.unreachable()), bearer(INTERNAL_KEY)],
    ] as const;
    for (const [endpoint, headers] of asked) {
      listener = await serve([endpoint]);
      const response = await listener.call(path, { method: 'POST', headers });
      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({ error: expect.stringMatching(/^wait must be /) });
      await listener.close();
    }
  },
);

test('forwards a wait in whole seconds', async () => {
  const [plain] = PLAIN_OPERATIONS;
  const asked: unknown[] = [];
  const client = await serving(({ url }, response) => {
    asked.push(url);
    response.writeHead(503, { connection: 'close' }).end('{"error":"no"}');
  });
  const forward = forwarder(client, { keyScope: 'any', limit: LIMITS.agents });
  listener = await serve([forward(plain!.declared)]);
  const path = `/api/agents/a1/${plain!.kind}?wait=60`;
  const response = await listener.call(path, { method: 'POST', headers: signedIn });
  expect([response.status, asked]).toEqual([503, [path]]);
});
