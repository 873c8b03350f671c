import { request } from 'node:http';
import { EventEmitter, once } from 'node:events';
import { AggregatorRegistry, Registry } from 'prom-client';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import { anonymous } from '../../../api/auth/anonymous.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { createListener } from '../../../api/http/listener.js';
import { reply } from '../../../api/http/reply.js';
import type { Listening } from '../../../api/http/server.js';
import { RequestSeconds } from '../../../src/platform/http/request-seconds.js';
import { loadSettings } from '../../../src/settings.js';
import { call } from '../../support/http.js';
import { testEnvironment } from '../../support/platform-environment.js';

let registry: Registry;
let listening: Listening;
const arrivals = new EventEmitter();

beforeEach(async () => {
  registry = new Registry();
  const described = { summary: 'For tests', tag: 'Tests', auth: anonymous } as const;
  const listener = createListener({
    name: 'tests',
    title: 'Tests',
    endpoints: [
      endpoint({
        ...described,
        method: 'GET',
        path: '/things/:id',
        params: z.object({ id: z.coerce.number() }),
        responses: { 200: z.strictObject({ id: z.number() }) },
        handler: ({ params }) => reply(200, params),
      }),
      endpoint({
        ...described,
        method: 'GET',
        path: '/slow',
        responses: { 200: z.strictObject({}) },
        async handler({ signal }) {
          arrivals.emit('arrived');
          await once(signal, 'abort');
          return reply(200, {});
        },
      }),
    ],
    limits: [],
    authenticate: [],
    log: pino({ level: 'silent' }),
    requests: new RequestSeconds(registry),
    settings: loadSettings(testEnvironment({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }))
      .http,
  });
  listening = await listener.listen('127.0.0.1', 0);
});
afterEach(() => listening?.close());

/** Returns the counts by labels. */
async function counts(): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split('\n');
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, labels = '', count] =
        /^aps_http_request_seconds_count\{(.*)\} (\d+)$/.exec(line) ?? [];
      return count === undefined ? [] : [[labels.replaceAll('"', ''), Number(count)]];
    }),
  );
}

test('counts a request by its declared path, and not by its parameters', async () => {
  await call(listening.url, 'GET', '/things/1');
  await call(listening.url, 'GET', '/things/2');
  await call(listening.url, 'GET', '/things/none');
  await expect.poll(counts).toEqual({
    'listener=tests,method=GET,route=/things/:id,status=200': 2,
    'listener=tests,method=GET,route=/things/:id,status=400': 1,
  });
});

test('adds no series for made-up paths and methods', async () => {
  for (let made = 0; made < 20; made++) await call(listening.url, 'GET', `/made/up/${made}`);
  for (const method of ['PROPFIND', 'PURGE', 'REPORT']) await call(listening.url, method, '/made');
  await expect.poll(counts).toEqual({
    'listener=tests,method=GET,route=unmatched,status=404': 20,
    'listener=tests,method=other,route=unmatched,status=404': 3,
  });
  const series = (await registry.metrics()).split('\n').filter((line) => line.startsWith('aps_'));
  expect(series.length).toBe(2 * 12);
});

test('counts a request whose client has left as aborted', async () => {
  const { port } = new URL(listening.url);
  const arrived = once(arrivals, 'arrived');
  const asked = request({ host: '127.0.0.1', port, path: '/slow' });
  asked.on('error', () => undefined);
  asked.end();
  await arrived;
  asked.destroy();
  await expect.poll(counts).toEqual({ 'listener=tests,method=GET,route=/slow,status=aborted': 1 });
});

test('counts a request in each bucket above its duration, and sums over processes', async () => {
  const process = new Registry();
  const note = new RequestSeconds(process).of('tests');
  note('GET', '/things/:id', 200, 0.05);
  note('GET', '/things/:id', 200, 300);
  const own = await process.metrics();
  expect(own).toContain('# TYPE aps_http_request_seconds histogram');
  const labels = 'listener="tests",method="GET",route="/things/:id",status="200"';
  for (const [le, count] of [
    ['0.02', 0],
    ['0.1', 1],
    ['60', 1],
    ['+Inf', 2],
  ]) {
    expect(own).toContain(`aps_http_request_seconds_bucket{le="${le}",${labels}} ${count}`);
  }
  expect(own).toContain(`aps_http_request_seconds_sum{${labels}} 300.05`);

  const one = await process.getMetricsAsJSON();
  const sums = await AggregatorRegistry.aggregate([one, one]).metrics();
  expect(sums).toContain(`aps_http_request_seconds_bucket{le="+Inf",${labels}} 4`);
  expect(sums).toContain(`aps_http_request_seconds_count{${labels}} 4`);
});
