import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { GATEWAY_HOST, GATEWAY_ORIGIN } from '../../../src/docker/containers/openclaw-config.js';
import {
  ask,
  openWebSocket,
  RUNNING,
  sendRaw,
  serveAgents,
  STOPPED,
  UNKNOWN,
  type AgentAddressLab,
  type RawConnection,
} from './support.js';

let lab: AgentAddressLab;
beforeAll(async () => {
  lab = await serveAgents((_, response) => response.end(), { ofAgent: 4, ofClient: 4 });
});
afterAll(() => lab?.close());
beforeEach(() => lab.seen.splice(0));

async function statusOf(connection: RawConnection): Promise<number> {
  await expect.poll(connection.received).toMatch(/\r\n\r\n/);
  return Number(connection.received().split(' ')[1]);
}

async function end({ closed, socket }: RawConnection): Promise<void> {
  socket.destroy();
  await closed;
}

test('connects a WebSocket to the gateway, and passes bytes both ways', async () => {
  const connection = openWebSocket(lab, RUNNING, ['Sec-WebSocket-Key: abc', 'Cookie: a=1']);
  expect(await statusOf(connection)).toBe(101);
  expect(connection.received()).toMatch(/^sec-websocket-accept: of-the-gateway\r$/im);
  expect(lab.seen[0]?.headers).toMatchObject({ 'sec-websocket-key': 'abc', cookie: 'a=1' });
  connection.socket.write('there and back');
  await expect.poll(connection.received).toMatch(/there and back$/);
  await end(connection);
});

test('connects a program with the host and origin that the gateway approves', async () => {
  const connection = openWebSocket(lab, RUNNING);
  expect(await statusOf(connection)).toBe(101);
  expect(lab.seen[0]?.headers).toMatchObject({ host: GATEWAY_HOST, origin: GATEWAY_ORIGIN });
  await end(connection);
});

test("connects the owner's browser in the same way, and no other browser", async () => {
  const opened = await ask(lab, { host: RUNNING, path: lab.openingPath() });
  expect(opened).toMatchObject({ status: 303, headers: { location: '/' } });
  const [cookie = ''] = opened.headers['set-cookie'] ?? [];
  expect(cookie).toMatch(
    /^agent-owner=[^;]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Strict; Secure$/,
  );
  const [pair = ''] = cookie.split(';');
  const origin = `Origin: https://${RUNNING}`;
  for (const [header, host] of [
    [`Cookie: a=1; ${pair}`, GATEWAY_HOST],
    ['Cookie: agent-owner=1.0', RUNNING],
    ['Cookie: a=1', RUNNING],
  ] as const) {
    const connection = openWebSocket(lab, RUNNING, [origin, header]);
    expect(await statusOf(connection)).toBe(101);
    const { headers } = lab.seen.at(-1) ?? {};
    expect([headers?.host, headers?.origin]).toEqual([host, GATEWAY_ORIGIN]);
    expect(headers?.cookie ?? '').not.toContain('agent-owner');
    await end(connection);
  }
});

test('opens no connection for a forged ticket', { tags: 'attack' }, async () => {
  for (const ticket of ['', '9999999999.00', `9999999999.${'0'.repeat(64)}`]) {
    const answer = await ask(lab, { host: RUNNING, path: `/-/open?ticket=${ticket}` });
    expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined]);
  }
});

test('passes on the answer of a gateway that refuses', async () => {
  const connection = openWebSocket(lab, RUNNING, [], '/refuse');
  await connection.closed;
  expect(connection.received()).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n[^]*\r\n\r\nno$/);
});

test('passes on no hint that precedes an answer', async () => {
  const connection = openWebSocket(lab, RUNNING, [], '/hint');
  await connection.closed;
  expect(connection.received()).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n[^]*\r\n\r\nno$/);
});

test('ends a connection whose answer breaks off, without a second answer', async () => {
  const connection = openWebSocket(lab, RUNNING, [], '/break');
  await connection.closed;
  expect(connection.received()).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n[^]*\r\n\r\nno$/);
});

test.each([
  ['an unknown agent', UNKNOWN, 404],
  ['a stopped agent', STOPPED, 503],
])('answers a page for %s', async (_case, host, status) => {
  const connection = openWebSocket(lab, host);
  expect(await statusOf(connection)).toBe(status);
  await connection.closed;
});

test('answers a request of the API that offers an upgrade as if it did not', async () => {
  const lines = ['GET /health HTTP/1.1', 'Host: localhost', 'Connection: Upgrade', 'Upgrade: h2c'];
  const connection = sendRaw(lab, lines);
  await connection.closed;
  expect(connection.received()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*{"ok":true}$/);
});

test('ends open WebSockets when the listener closes', async () => {
  const closing = await serveAgents((_, response) => response.end());
  const connection = openWebSocket(closing, RUNNING);
  expect(await statusOf(connection)).toBe(101);
  await closing.close();
  await connection.closed;
});

test('ends a WebSocket without a byte for the idle time', async () => {
  const strict = await serveAgents((_, response) => response.end(), { idleMs: 50 });
  const connection = openWebSocket(strict, RUNNING);
  expect(await statusOf(connection)).toBe(101);
  await connection.closed;
  await strict.close();
});

describe('hostile WebSockets', { tags: 'attack' }, () => {
  test.each([
    ['Origin: https://evil.example', 403],
    ['Origin: null', 403],
    [`Origin: http://second-0a1b2c3d.agents.test`, 403],
    [`Origin: http://${RUNNING}.evil.example`, 403],
    [`Origin: https://${RUNNING}`, 101],
  ])('answers a handshake with "%s" by %i', async (origin, status) => {
    const connection = openWebSocket(lab, RUNNING, [origin]);
    expect(await statusOf(connection)).toBe(status);
    expect(lab.seen).toHaveLength(status === 101 ? 1 : 0);
    await end(connection);
  });

  test('upgrades to nothing but WebSockets', async () => {
    const lines = ['GET / HTTP/1.1', `Host: ${RUNNING}`, 'Connection: Upgrade', 'Upgrade: h2c'];
    expect(await statusOf(sendRaw(lab, lines))).toBe(400);
    expect(lab.seen).toHaveLength(0);
  });

  test('refuses more connections of an agent than its bound, until one ends', async () => {
    const open = Array.from({ length: 4 }, () => openWebSocket(lab, RUNNING));
    const statuses = await Promise.all(open.map(statusOf));
    expect(statuses).toEqual([101, 101, 101, 101]);
    expect(await statusOf(openWebSocket(lab, RUNNING))).toBe(503);
    expect(await statusOf(sendRaw(lab, ['GET /health HTTP/1.1', 'Host: localhost']))).toBe(200);
    const [first, ...others] = open;
    if (first) await end(first);
    await expect.poll(async () => statusOf(openWebSocket(lab, RUNNING))).toBe(101);
    await Promise.all(others.map(end));
  });

  test('refuses more connections of one client than its part of an agent', async () => {
    const shared = await serveAgents((_, response) => response.end(), { ofClient: 1 });
    const first = openWebSocket(shared, RUNNING);
    expect(await statusOf(first)).toBe(101);
    expect(await statusOf(openWebSocket(shared, RUNNING))).toBe(503);
    await end(first);
    await shared.close();
  });
});
