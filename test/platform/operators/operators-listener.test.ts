import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import {
  serveOperators,
  type OperatorsListenerParts,
  type OperatorsListening,
} from '../../../src/platform/operators/operators-listener.js';
import { CheckFailedError, Readiness } from '../../../src/platform/operators/readiness.js';
import { keptLog } from '../../support/platform-environment.js';

const open: OperatorsListening[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

const { lines, log } = keptLog();

async function serve(parts: Partial<OperatorsListenerParts> = {}): Promise<string> {
  const readiness = new Readiness({}, '1.2.3');
  readiness.serves();
  const listening = await serveOperators({
    host: '127.0.0.1',
    port: 0,
    variable: 'METRICS_PORT',
    names: new Set(),
    metrics: { contentType: 'text/plain', read: () => Promise.resolve('aps_a 1\n') },
    readiness,
    log,
    ...parts,
  });
  open.push(listening);
  return listening.url ?? '';
}

async function call(url: string, options?: RequestInit) {
  const response = await fetch(url, options);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

test('serves metrics, and refuses other paths and methods', async () => {
  const url = await serve();
  const metrics = await call(`${url}/metrics`);
  expect([metrics.status, metrics.headers.get('content-type'), metrics.text]).toEqual([
    200,
    'text/plain',
    'aps_a 1\n',
  ]);
  expect((await call(`${url}/metrics?a=b`)).status).toBe(200);
  expect((await call(`${url}/metrics`, { method: 'HEAD' })).text).toBe('');
  expect((await call(`${url}/metrics`, { method: 'POST' })).status).toBe(405);
  expect((await call(`${url}/`)).status).toBe(404);
});

test('answers /livez without any check, and /readyz with 200 or 503 by its checks', async () => {
  const ready = await serve();
  expect(JSON.parse((await call(`${ready}/readyz`)).text)).toEqual({
    ready: true,
    release: '1.2.3',
    checks: { process: { ok: true } },
  });
  const readiness = new Readiness(
    {
      node: () => Promise.reject(new CheckFailedError('The node does not answer')),
    },
    '1.2.3',
  );
  const url = await serve({ readiness });
  const { status, text } = await call(`${url}/readyz`);
  expect([status, JSON.parse(text)]).toMatchObject([
    503,
    { ready: false, checks: { node: { ok: false, reason: 'The node does not answer' } } },
  ]);
  expect([await call(`${url}/livez`)]).toMatchObject([{ status: 200, text: '{"live":true}' }]);
});

test('answers 500 if metrics cannot be read, and logs the reason', async () => {
  const read = () => Promise.reject(new Error('a process did not answer'));
  const url = await serve({ metrics: { contentType: 'text/plain', read } });
  expect((await call(`${url}/metrics`)).status).toBe(500);
  expect(lines.join()).toContain('a process did not answer');
});

test('continues without the listener, and names the variable, if the port is in use', async () => {
  const port = Number(new URL(await serve()).port);
  expect(await serve({ port })).toBe('');
  expect(lines.join()).toContain('set METRICS_PORT to a free address');
  expect(lines.join()).toContain('EADDRINUSE');
});

test('drops connections from the networks of agents', async () => {
  const url = await serve({ refuseFrom: ['127.0.0.0/8'] });
  const { port } = new URL(url);
  const answer = await new Promise<string>((resolve) => {
    let text = '';
    const socket = connect(Number(port), '127.0.0.1', () =>
      socket.write('GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'),
    );
    socket.on('data', (data: Buffer) => (text += data.toString()));
    socket.on('error', () => undefined);
    socket.once('close', () => resolve(text));
  });
  expect(answer).toBe('');
});
