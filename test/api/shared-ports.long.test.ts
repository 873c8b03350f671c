import { fork, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../dev/ports.js';
import { builtProgram } from '../../dev/root.js';
import type { ReadinessReport } from '../../src/platform/operators/readiness.js';
import { isRunning } from '../../src/lib/is-running.js';
import { testEnvironment } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { TestRedis } from '../support/redis.js';

let database: TestDatabase;
let redis: TestRedis;
let folder: string;
let env: NodeJS.ProcessEnv;
let api: ChildProcess | undefined;
let output = '';

beforeAll(async () => {
  [database, redis] = await Promise.all([testDatabase(), TestRedis.start()]);
  folder = await mkdtemp(path.join(tmpdir(), 'aps-shared-ports-'));
  env = {
    ...process.env,
    ...testEnvironment({
      DATABASE_URL: database.url,
      INTERNAL_API_KEY: randomBytes(16).toString('hex'),
      DATA_DIR: folder,
      REDIS_URL: redis.url,
      API_PROCESSES: '2',
      WEB_PORT: String(await freePort()),
      BACKEND_PORT: String(await freePort()),
      METRICS_PORT: String(await freePort()),
      DOCKER_HOST: 'unix:///nowhere/docker.sock',
      TEMPORAL_ADDRESS: '127.0.0.1:1',
    }),
  };
});
afterEach(() => end('SIGKILL'));
afterAll(async () => {
  await database?.close();
  await redis?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** Starts the product's API; returns the first message to its launcher. */
async function start(more: NodeJS.ProcessEnv = {}): Promise<unknown> {
  output = '';
  const child = fork(builtProgram('api', 'main.js'), {
    env: { ...env, ...more },
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  api = child;
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  for (;;) {
    const [said] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as unknown[];
    if (typeof said !== 'object' || said === null || !('notice' in said)) return said;
  }
}

/** Ends the API and returns its exit code. */
async function end(signal: NodeJS.Signals): Promise<number | null> {
  const child = api;
  api = undefined;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return null;
  const ended = once(child, 'exit');
  child.kill(signal);
  const [code] = await ended;
  return code;
}

const lines = (): { pid: number; msg: string }[] =>
  output
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line));

const url = (port: string) => `http://127.0.0.1:${env[port]}`;

/** Sends a request on a connection of its own. */
const get = (address: string) => fetch(address, { headers: { connection: 'close' } });

/** Sends requests until two processes have logged some; returns the processes' ids. */
async function bothServe(): Promise<number[]> {
  let pids = new Set<number>();
  await expect
    .poll(async () => {
      expect((await get(`${url('WEB_PORT')}/api/auth/session`)).status).toBe(200);
      pids = new Set(lines().flatMap(({ msg, pid }) => (msg === 'request' ? [pid] : [])));
      return [...pids].filter(isRunning).length;
    })
    .toBe(2);
  return [...pids].filter(isRunning);
}

/** Returns the status of `/readyz`, and the names of the checks that fail. */
async function readiness() {
  const response = await get(`${url('METRICS_PORT')}/readyz`);
  const { checks } = (await response.json()) as ReadinessReport;
  const failing = Object.entries(checks).flatMap(([name, { ok }]) => (ok ? [] : [name]));
  return { status: response.status, failing };
}

test('an API process answers operators, and names the missing services', async () => {
  expect(await start({ API_PROCESSES: '1' })).toEqual({ ready: true });
  expect((await get(`${url('METRICS_PORT')}/livez`)).status).toBe(200);
  expect(await readiness()).toEqual({ status: 503, failing: ['temporal'] });
  await get(`${url('WEB_PORT')}/api/auth/session`);
  const text = await (await get(`${url('METRICS_PORT')}/metrics`)).text();
  expect(text).toContain('route="/api/auth/session",status="200"');
  expect(text).toContain('process_cpu_seconds_total');
});

test("an API starts although its operators' port is in use", async () => {
  const other = createServer().listen(Number(env.METRICS_PORT), '127.0.0.1');
  await once(other, 'listening');
  try {
    expect(await start({ API_PROCESSES: '1' })).toEqual({ ready: true });
    await end('SIGTERM');
    expect(output).toContain('set METRICS_PORT to a free address');
  } finally {
    other.close();
  }
});

test('API_PROCESSES share the ports, replace each other, sum their metrics and end together', async () => {
  expect(await start()).toEqual({ ready: true });
  const [victim = 0, survivor = 0] = await bothServe();
  const metrics = await get(`${url('METRICS_PORT')}/metrics`);
  expect([metrics.status, await metrics.text()]).toEqual([
    200,
    expect.stringMatching(
      /aps_http_request_seconds_count\{listener="web".*session",status="200"\}/,
    ),
  ]);
  expect(await readiness()).toEqual({ status: 503, failing: ['temporal'] });

  process.kill(victim, 'SIGKILL');
  await expect.poll(() => isRunning(victim)).toBe(false);
  const after = await bothServe();
  expect(after).toContain(survivor);
  const replaced = () => lines().filter(({ msg }) => msg.includes('is replaced')).length;
  await expect.poll(replaced).toBe(1);

  expect(await end('SIGTERM')).toBe(0);
  expect(after.filter(isRunning)).toEqual([]);
});

test('processes that share the ports end when the process that started them is killed', async () => {
  await start();
  const pids = await bothServe();
  await end('SIGKILL');
  await expect.poll(() => pids.filter(isRunning)).toEqual([]);
});

test('a start whose port is in use reports the reason once and leaves no process', async () => {
  await start();
  const [first] = [api];
  const problem = await start({ METRICS_PORT: '0' }).finally(() => first?.kill('SIGTERM'));
  expect(problem).toEqual({ problem: expect.stringContaining('the port is used') });
});
