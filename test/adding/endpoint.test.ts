import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { internalKey } from '../../api/auth/internal-key.js';
import { area } from '../../api/http/area.js';
import { reply } from '../../api/http/reply.js';
import { BackendClient } from '../../api/web/backend-client.js';
import { forwarder } from '../../api/web/forward.js';
import { NotFoundError } from '../../src/errors.js';
import { bearer, INTERNAL_KEY, serve, signedIn, type TestListener } from '../http/support.js';

const params = z.object({ id: z.string() });
const ofAgent = area({ tag: 'Agents', auth: internalKey, params, errors: [404] });

const agentUptime = ofAgent.declare({
  method: 'GET',
  path: '/api/agents/:id/uptime',
  summary: 'For how long an agent has been running',
  responses: {
    200: z.strictObject({ id: z.string(), startedAt: z.iso.datetime().nullable() }),
  },
});

let backend: TestListener;
let web: TestListener;
beforeAll(async () => {
  backend = await serve([
    agentUptime.handledBy(({ params }) => reply(200, { id: params.id, startedAt: null })),
  ]);
  const forward = forwarder<{ readonly id: string }>(new BackendClient(backend.url, INTERNAL_KEY), {
    limit: { name: 'agents', max: 100, windowMs: 60_000, message: 'Too many requests' },
    check({ params, tenant }) {
      if (params.id === `agent-of-${tenant.userId}`) return Promise.resolve();
      throw new NotFoundError('Agent not found');
    },
  });
  web = await serve([forward(agentUptime)]);
});
afterAll(() => Promise.all([backend?.close(), web?.close()]));

test('an endpoint that is declared once stands on both listeners', async () => {
  const path = '/api/agents/agent-of-ada/uptime';
  const answer = { id: 'agent-of-ada', startedAt: null };
  const ofBackend = await backend.call(path, { headers: bearer(INTERNAL_KEY) });
  expect([ofBackend.status, await ofBackend.json()]).toEqual([200, answer]);
  const ofWeb = await web.call(path, { headers: signedIn });
  expect([ofWeb.status, await ofWeb.json()]).toEqual([200, answer]);
});

test('each listener asks for its own callers, and the web for what is theirs', async () => {
  expect((await backend.call('/api/agents/agent-of-ada/uptime')).status).toBe(401);
  expect((await web.call('/api/agents/agent-of-ada/uptime')).status).toBe(401);
  const ofBob = await web.call('/api/agents/agent-of-bob/uptime', { headers: signedIn });
  expect(ofBob.status).toBe(404);
});
