import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RequestSeconds } from '../../../src/platform/http/request-seconds.js';
import { HTTP_SETTINGS } from '../http/support.js';
import {
  ask,
  openWebSocket,
  RUNNING,
  serveAgents,
  STOPPED,
  UNKNOWN,
  type AgentAddressLab,
} from './support.js';

const registry = new Registry();
const UNUSUAL = 498;

let lab: AgentAddressLab;
beforeAll(async () => {
  const answer = (url = '') => (url === '/unusual' ? UNUSUAL : 200);
  lab = await serveAgents(
    (request, response) => response.writeHead(answer(request.url)).end(),
    {},
    HTTP_SETTINGS.requestsPerMinute,
    new RequestSeconds(registry),
  );
});
afterAll(() => lab?.close());

/** Returns the counts of requests by their labels. */
async function counts(): Promise<readonly string[]> {
  const lines = (await registry.metrics()).split('\n');
  return lines.filter((line) => line.startsWith('aps_http_request_seconds_count')).sort();
}

const count = (method: string, route: string, status: string) =>
  `aps_http_request_seconds_count{listener="agents",method="${method}",route="${route}",status="${status}"} 1`;

test("notes requests and WebSockets at agents' own addresses, without their paths", async () => {
  await ask(lab, { host: RUNNING, path: '/a/secret/path' });
  await ask(lab, { host: RUNNING, path: '/unusual', method: 'POST' });
  await ask(lab, { host: STOPPED });
  await ask(lab, { host: UNKNOWN });
  for (const [host, path] of [
    [RUNNING, '/'],
    [RUNNING, '/refuse'],
    [STOPPED, '/'],
  ] as const) {
    const connection = openWebSocket(lab, host, [], path);
    await expect.poll(connection.received).toMatch(/\r\n\r\n/);
    connection.socket.destroy();
    await connection.closed;
  }
  await expect
    .poll(counts)
    .toEqual(
      [
        count('GET', 'http', '200'),
        count('GET', 'http', '404'),
        count('GET', 'http', '503'),
        count('GET', 'websocket', '101'),
        count('GET', 'websocket', '401'),
        count('GET', 'websocket', '503'),
        count('POST', 'http', '400'),
      ].sort(),
    );
});
