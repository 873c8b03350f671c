import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { agentArchives, runtimeInstances } from '../../api/backend/contract.js';
import { BackendClient } from '../../api/web/backend-client.js';
import { forwarder } from '../../api/web/forward.js';
import { LIMITS } from '../../api/web/limits.js';
import { BadGatewayError } from '../../src/errors.js';
import { StillRunningError } from '../../src/idempotency/kept-answers.js';
import { ADA, serve, signedIn, type TestListener } from '../http/support.js';

const ON = {
  caller: { kind: 'session', user: ADA, csrfToken: '', plan: undefined },
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

/** A backend that gives every request this answer. */
async function answering(
  body: unknown,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): Promise<BackendClient> {
  const server = createServer((_request, response) => {
    response.writeHead(status, { connection: 'close', ...headers }).end(JSON.stringify(body));
  });
  backend = server;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // TCP: never a string
  return new BackendClient(`http://127.0.0.1:${port}`, 'key');
}

test('what a newer backend tells beside is ignored, at any depth', async () => {
  const client = await answering({
    ...NEWER,
    count: 2,
    instances: [INSTANCE, { ...INSTANCE, ...NEWER }],
  });
  const answer = await client.call(ON, runtimeInstances, {});
  expect(answer).toEqual({ count: 2, instances: [INSTANCE, INSTANCE] });
});

test('what is missing is not ignored', async () => {
  const { image: _image, ...without } = INSTANCE;
  const client = await answering({ ...NEWER, count: 1, instances: [{ ...without, ...NEWER }] });
  await expect(client.call(ON, runtimeInstances, {})).rejects.toThrow(BadGatewayError);
});

test('that the backend is still at the first call is told with when to come again', async () => {
  const busy = { error: 'A request with this Idempotency-Key is still running' };
  const client = await answering(busy, { status: 409, headers: { 'retry-after': '7' } });
  const refused = client.call(ON, runtimeInstances, {});
  await expect(refused).rejects.toThrow(StillRunningError);
  await expect(refused).rejects.toMatchObject({ status: 409, message: busy.error, retryAfter: 7 });
});

test('what is handed on is what this version declares', async () => {
  const client = await answering({ ...NEWER, archives: [] });
  const forward = forwarder(client, { limit: LIMITS.agents, owned: () => Promise.resolve() });
  listener = await serve([forward(agentArchives)]);
  const response = await listener.call('/api/agents/a1/archives', { headers: signedIn });
  expect([response.status, await response.json()]).toEqual([200, { archives: [] }]);
});
