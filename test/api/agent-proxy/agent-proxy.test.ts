import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type AgentAddressLab,
  ask,
  BROKEN,
  OWN,
  RUNNING,
  serveAgents,
  STOPPED,
  UNKNOWN,
} from './support.js';

let lab: AgentAddressLab;
beforeAll(async () => {
  lab = await serveAgents((request, response) => {
    void text(request).then((body) => {
      response.setHeader('set-cookie', [
        'a=1; Path=/; Domain=agents.test; HttpOnly',
        'service-session=forged; Path=/',
        'agent-owner=forged',
      ]);
      response.writeHead(201, { 'content-type': 'text/plain', 'clear-site-data': '"cookies"' });
      response.end(`${request.method} ${request.url} ${body}`);
    });
  });
});
afterAll(() => lab?.close());
beforeEach(() => lab.seen.splice(0));

test("passes a request on to the agent's gateway, and the answer back", async () => {
  const asked = { host: RUNNING, method: 'POST', path: '/chat?a=%2F', body: 'hello' };
  expect(await ask(lab, asked)).toMatchObject({
    status: 201,
    body: 'POST /chat?a=%2F hello',
    headers: { 'content-type': 'text/plain' },
  });
  expect(lab.seen[0]?.headers.host).toBe(RUNNING);
});

test('reads the host name without its port and in any case', async () => {
  expect((await ask(lab, { host: `${RUNNING.toUpperCase()}:3000` })).status).toBe(201);
});

test.each([
  ['an unknown agent', UNKNOWN, 404, 'No agent has this address.'],
  ['a stopped agent', STOPPED, 503, 'The agent does not run'],
  ['a gateway that refuses connections', BROKEN, 502, 'The agent cannot be reached'],
])('answers a plain page for %s', async (_case, host, status, page) => {
  const answer = await ask(lab, { host });
  expect(answer).toMatchObject({ status, body: expect.stringContaining(page) });
  expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
});

test.each(['agents.test', 'a.b.agents.test', 'first-0a1b2c3d.agents.test.evil.example'])(
  'refuses the host name "%s" as before',
  async (host) => {
    expect((await ask(lab, { host, path: '/health' })).status).toBe(421);
  },
);

test('still serves the API under its own names', async () => {
  expect((await lab.listener.call('/health')).status).toBe(200);
  expect(lab.seen).toHaveLength(0);
});

test("serves its own name below the agents' domain itself", async () => {
  expect((await ask(lab, { host: OWN, path: '/health' })).status).toBe(200);
  expect(lab.seen).toHaveLength(0);
});

test('streams an answer while the agent writes it', async () => {
  const streaming = await serveAgents((_, response) => {
    response.write('one ');
    setTimeout(() => response.end('two'), 50);
  });
  const socket = connect(streaming.listener.port, '127.0.0.1');
  socket.write(`GET / HTTP/1.1\r\nHost: ${RUNNING}\r\n\r\n`);
  const [first] = (await once(socket, 'data')) as [Buffer];
  expect(first.toString()).toContain('one');
  expect(first.toString()).not.toContain('two');
  const [second] = (await once(socket, 'data')) as [Buffer];
  expect(second.toString()).toContain('two');
  socket.destroy();
  await streaming.close();
});

describe('cookies and claims', { tags: 'attack' }, () => {
  test("sends none of the platform's cookies to an agent", async () => {
    const cookie =
      'a=1; service-session=secret; agent-owner=secret; sign-in-google-1=secret; ' +
      '__Host-sign-in-github-2=secret; b=2';
    await ask(lab, { host: RUNNING, headers: { cookie } });
    expect(lab.seen[0]?.headers.cookie).toBe('a=1; b=2');
    await ask(lab, { host: RUNNING, headers: { cookie: 'service-session=secret' } });
    expect(lab.seen[1]?.headers).not.toHaveProperty('cookie');
  });

  test("limits an agent's cookies to its own host name, and drops names of the platform's", async () => {
    const { headers } = await ask(lab, { host: RUNNING });
    expect(headers['set-cookie']).toEqual(['a=1; Path=/; HttpOnly']);
    expect(headers).not.toHaveProperty('clear-site-data');
  });

  test('passes on no claim of a client about its address', async () => {
    const claims = {
      forwarded: 'for=127.0.0.1',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': 'localhost',
      'x-real-ip': '127.0.0.1',
      'tailscale-user-login': 'ada@example.com',
      'x-hop': '1',
      connection: 'x-hop',
    };
    await ask(lab, { host: RUNNING, headers: claims });
    const { connection, ...seen } = lab.seen[0]?.headers ?? {};
    expect(Object.keys(seen)).toEqual(['host']);
  });
});
