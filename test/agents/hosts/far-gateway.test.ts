import { once } from 'node:events';
import http, { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  GatewayConnections,
  type GatewayTarget,
} from '../../../src/agents/hosts/gateway-connections.js';
import { hostToken } from '../../../src/agents/hosts/host-token.js';
import { HostUnreachableError, RemoteHost } from '../../../src/agents/hosts/remote-host.js';
import { ConflictError } from '../../../src/lib/errors.js';
import { testSecrets } from '../../support/secrets.js';
import { FarHost, gatewayAt } from './far-host.js';

const AGENT = { agentId: 'a', userId: 'u', host: 'far' };
let far: FarHost;
let gateway: Server;
/** Agents that were connected to. */
let connected: unknown[];

beforeEach(async () => {
  connected = [];
  gateway = createServer((request, response) => {
    void text(request).then((body) => response.end(`${request.url} ${body}`));
  });
  const connect = await gatewayAt(gateway);
  far = new FarHost();
  await far.listen({
    async connect(agent) {
      if (agent.agentId === 'stopped')
        throw new ConflictError('The agent is not running', 'AGENT_NOT_RUNNING');
      connected.push(agent);
      return await connect();
    },
  });
});
afterEach(async () => {
  await far.close();
  gateway.closeAllConnections();
  gateway.close();
});

const remote = (at = far.url) =>
  new RemoteHost({ id: 'far', url: at, secrets: far.secrets, log: far.log, admissionMs: 10_000 });

async function ask(target: GatewayTarget | undefined, path: string, body: string) {
  if (target === undefined) throw new TypeError('the agent runs');
  const { dispatcher, origin } = target;
  const answer = await request(origin + path, { dispatcher, method: 'POST', body });
  return answer.body.text();
}

test("reaches an agent's gateway through its host's worker, and reuses the connection", async () => {
  const connections = new GatewayConnections('here', (agent) => remote().connect(agent));
  const target = connections.to({ ...AGENT, port: 19_100 });
  expect(await ask(target, '/one', 'first')).toBe('/one first');
  await setImmediate(); // undici offers a connection again after it delivered the answer
  expect(await ask(target, '/two', 'second')).toBe('/two second');
  expect(connected).toEqual([AGENT]);
  await connections.close();
});

test('never shares connections between agents', async () => {
  const connections = new GatewayConnections('here', (agent) => remote().connect(agent));
  const other = { ...AGENT, agentId: 'b' };
  await ask(connections.to({ ...AGENT, port: 19_100 }), '/', '');
  await ask(connections.to({ ...other, port: 19_100 }), '/', '');
  expect(connected).toEqual([AGENT, other]);
  await connections.close();
});

test('fails where the agent does not run, or the host does not answer', async () => {
  await expect(remote().connect({ ...AGENT, agentId: 'stopped' })).rejects.toMatchObject({
    status: 502,
  });
  await expect(remote('http://127.0.0.1:1').connect(AGENT)).rejects.toThrow(HostUnreachableError);
  const connections = new GatewayConnections('here', (agent) => remote().connect(agent));
  const asking = ask(connections.to({ ...AGENT, agentId: 'stopped', port: 1 }), '/', '');
  await expect(asking).rejects.toMatchObject({ status: 502 });
});

test("ends connections when the host's listener closes", async () => {
  const socket = await remote().connect(AGENT);
  const closed = once(socket, 'close');
  await far.close();
  await closed;
});

describe('connections of strangers', { tags: 'attack' }, () => {
  const call = JSON.stringify({ agentId: 'a', userId: 'u' });

  async function statusOf(given: Readonly<Record<string, string>>, path = '/v1/gateway') {
    const request = http.request(`${far.url}${path}`, {
      headers: {
        connection: 'Upgrade',
        upgrade: 'agent-gateway',
        authorization: `Bearer ${hostToken(far.secrets, 'far', call)}`,
        'x-gateway-call': call,
        ...given,
      },
    });
    request.end();
    return new Promise<number | undefined>((resolve, reject) => {
      request.on('error', reject);
      request.on('response', ({ statusCode }) => resolve(statusCode));
      request.on('upgrade', ({ statusCode }, socket) => {
        socket.destroy();
        resolve(statusCode);
      });
    });
  }

  test('connections of strangers need a token for this host, this agent and one connection', async () => {
    const authorization = `Bearer ${hostToken(far.secrets, 'far', call)}`;
    const of = (token: string) => ({ authorization: `Bearer ${token}` });
    expect(await statusOf({ authorization: '' })).toBe(401);
    expect(await statusOf(of(hostToken(testSecrets(), 'far', call)))).toBe(401);
    expect(await statusOf(of(hostToken(far.secrets, 'near', call)))).toBe(401);
    const another = JSON.stringify({ agentId: 'b', userId: 'u' });
    expect(await statusOf({ 'x-gateway-call': another })).toBe(401);
    expect(await statusOf({ host: 'rebound.example' })).toBe(421);
    expect(await statusOf({ upgrade: 'websocket' })).toBe(404);
    expect(await statusOf({}, '/v1/calls')).toBe(404);
    expect(connected).toEqual([]);
    expect(await statusOf({ authorization })).toBe(101);
    expect(await statusOf({ authorization })).toBe(401);
  });

  test('connections of strangers are bounded for each agent', async () => {
    const open = await Promise.all(Array.from({ length: 100 }, () => remote().connect(AGENT)));
    await expect(remote().connect(AGENT)).rejects.toMatchObject({ status: 502 });
    const other = await remote().connect({ ...AGENT, agentId: 'b' });
    for (const socket of [...open, other]) socket.destroy();
  });
});
