import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../dev/ports.js';
import { examine } from '../../src/doctor/check.js';
import { portsCheck } from '../../src/doctor/ports-check.js';

async function portOf(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return String((server.address() as AddressInfo).port); // never a string for a TCP listener
}

const PORTS = [
  'WEB_PORT',
  'BACKEND_PORT',
  'SUMMARIZER_PORT',
  'METRICS_PORT',
  'AGENT_AI_PORT',
  'AGENT_AI_METRICS_PORT',
  'SUMMARIZER_METRICS_PORT',
];

const other = () => createServer((_, response) => void response.end('a page'));

/** Examines ports, which are free unless named. */
async function findingsOf(runs: boolean, taken: Readonly<Record<string, string>> = {}) {
  const free: Record<string, string> = {};
  for (const name of PORTS) free[name] = `${await freePort()}`;
  const env = {
    ...free,
    AGENT_AI_HOST: '127.0.0.1',
    ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
    INTERNAL_API_KEY: 'k',
    WORKER_METRICS_LISTEN: `127.0.0.1:${await freePort()}`,
    PAYMENTS_METRICS_LISTEN: `127.0.0.1:${await freePort()}`,
    ...taken,
  };
  const findings = await examine([portsCheck(runs)], env);
  return findings.map(({ status, text }) => `${status}: ${text}`);
}

test('accepts free ports', async () => {
  expect(await findingsOf(false)).toEqual([
    'ok: No other program has a port of a listener.',
    'ok: Gateways of new agents have free ports.',
  ]);
});

test.each(PORTS)('names a port that another program has, and its setting %s', async (name) => {
  const port = await portOf(other());
  expect(await findingsOf(true, { [name]: port })).toContainEqual(
    expect.stringMatching(
      new RegExp(`^failure: Port ${port} on 127\\.0\\.0\\.1 is used .* set ${name} to a free`),
    ),
  );
});

test('names the occupied address of each setting that is an address', async () => {
  for (const name of ['WORKER_METRICS_LISTEN', 'PAYMENTS_METRICS_LISTEN', 'HOST_LISTEN']) {
    const [fault] = await findingsOf(false, { [name]: `127.0.0.1:${await portOf(other())}` });
    expect(fault).toContain(`set ${name} to a free port`);
  }
});

test('accepts ports of a running platform, and no occupied port while none runs', async () => {
  const api = createServer((_, response) => void response.setHeader('X-Request-Id', '1').end());
  const metrics = createServer((_, response) => void response.end('# TYPE x\ntemporal_x 1\n'));
  const taken = {
    WEB_PORT: await portOf(api),
    WORKER_METRICS_LISTEN: `127.0.0.1:${await portOf(metrics)}`,
  };
  expect((await findingsOf(true, taken))[0]).toMatch(/^ok: No other program/);
  const faults = await findingsOf(false, taken);
  expect(faults.filter((fault) => fault.startsWith('failure'))).toHaveLength(2);
});

test('names a range in which no port is free for an agent', async () => {
  const port = await portOf(other());
  expect((await findingsOf(true, { AGENT_PORT_RANGE: `${port}-${port}` })).at(-1)).toBe(
    `failure: No port from ${port} to ${port} is free for an agent's gateway: widen AGENT_PORT_RANGE, or end ` +
      'what uses them.',
  );
});

test("accepts a running worker's HOST_LISTEN, which cannot be recognized", async () => {
  const listener = createServer((_, response) => void response.writeHead(404).end());
  const taken = { HOST_LISTEN: `127.0.0.1:${await portOf(listener)}` };
  expect((await findingsOf(true, taken))[0]).toMatch(/^ok: No other program/);
});
