import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AtEnd } from '../../bench/support/cleanups.js';
import { BenchPlatform } from '../../bench/support/platform.js';
import { buildPrograms } from '../support/run-program.js';
import { bench, rowOf } from './run-benchmark.js';

beforeAll(buildPrograms);

describe('each benchmark runs separately and prints its ratio beside the target', () => {
  test('runs the provision benchmark', async () => {
    const output = await bench('provision', [
      '--image=small',
      '--runs=1',
      '--burst=2',
      '--bursts=1',
    ]);
    const [, , ratio, aim] = rowOf(output, 'dockerode, the same container ');
    expect(Number(ratio)).toBeGreaterThan(0);
    expect(aim).toBe('1.2');
    expect(rowOf(output, 'dockerode, the same containers ')[1]).toBe('2 of 2');
    expect(rowOf(output, 'startContainer')).toHaveLength(5);
    const [, ms, overConfigure, aimOfInstall] = rowOf(output, 'install a skill');
    expect(Number(ms)).toBeGreaterThan(0);
    expect(Number(overConfigure)).toBeGreaterThan(0);
    expect(aimOfInstall).toBe('1.1');
  });

  test('runs the debit benchmark', async () => {
    const sizes = ['--rounds=1', '--seconds=0.2', '--warmup=0.1', '--sessions=2'];
    const output = await bench('debit', [...sizes, '--connections=4']);
    for (const name of ['debits of one session', 'debits of 2 sessions']) {
      expect(Number(rowOf(output, name)[1])).toBeGreaterThan(0);
    }
    const [, , , , , ratio, aim] = rowOf(output, '  bare Koa handler');
    expect(Number(ratio)).toBeGreaterThan(0);
    expect(aim).toBe('0.7');
  });

  test('runs the webhook benchmark', async () => {
    const output = await bench('webhook', ['--rounds=1', '--events=100', '--connections=4']);
    expect(Number(rowOf(output, 'events of the payment processor')[1])).toBeGreaterThan(0);
    const [, , , , , ratio, aim] = rowOf(output, '  bare Koa handler');
    expect(Number(ratio)).toBeGreaterThan(0);
    expect(aim).toBe('0.7');
  });

  test('runs the bus benchmark', async () => {
    const sizes = ['--rounds=1', '--messages=50', '--agents=4', '--deliveries=50', '--rate=50'];
    const output = await bench('bus', [...sizes, '--connections=4']);
    expect(Number(rowOf(output, 'accepted messages')[1])).toBeGreaterThan(0);
    const [, , , , , ratio, aim] = rowOf(output, '  bare Koa handler');
    expect(Number(ratio)).toBeGreaterThan(0);
    expect(aim).toBe('0.7');
    const [, p50, , , aimed] = rowOf(output, 'delivery');
    expect(Number(p50)).toBeGreaterThan(0);
    expect(aimed).toBe('250');
    expect(Number(rowOf(output, '  bare: posted')[1])).not.toBeNaN();
  });

  test("runs the benchmark of agents' addresses", async () => {
    const output = await bench('agent-proxy', ['--rounds=1', '--seconds=0.2', '--warmup=0.1']);
    const [, , , , , ratio, aim] = rowOf(output, "an agent's address, 16");
    expect(Number(ratio)).toBeGreaterThan(0);
    expect(aim).toBe('0.5');
  });

  test('runs the files benchmark', async () => {
    const sizes = ['--listed=200', '--tracked=100', '--colds=1'];
    const output = await bench('files', ['--runs=3', '--statuses=1', ...sizes]);
    const [host = '', volume = ''] = output.split(/^(?=in a volume)/m);
    for (const [there, aim] of [
      [host, '2'],
      [volume, '10'],
    ] as const) {
      expect(Number(rowOf(there, 'read, 10 kB ')[1])).toBeGreaterThan(0);
      expect(rowOf(there, 'read, 10 kB ')[3]).toBe(aim);
      expect(Number(rowOf(there, 'status to git status')[1])).toBeGreaterThan(0);
      expect(rowOf(there, 'status to git status')[2]).toBe('1.3');
    }
    expect(Number(rowOf(volume, 'read, 10 kB, cold')[1])).toBeGreaterThan(0);
  });

  test('runs the pages benchmark on its own pages without other readers', async () => {
    const rates = ['--seconds=0.5', '--steady=20'];
    const output = await bench('pages', ['--labels=own', '--against=', ...rates]);
    for (const kind of ['blog', 'docs', 'forum', 'front', 'list', 'product', 'recipe']) {
      expect(Number(rowOf(output, `${kind} `)[2])).toBeGreaterThan(0.5);
    }
    expect(rowOf(output, 'this product: whole texts')[4]).toBe('0.965');
    expect(Number(rowOf(output, 'read, 8 at a time')[1])).toBeGreaterThan(0);
    expect(rowOf(output, 'summarize, 32 at a time')[5]).toBe('3');
    expect(Number(rowOf(output, 'after 20 pages')[1])).toBeGreaterThan(0);
  });

  test('runs the usage benchmark', async () => {
    const output = await bench('usage', [
      '--rows=1000',
      '--batches=2',
      '--runs=2',
      '--bare-runs=1',
    ]);
    for (const name of ['dashboard, 7d', 'summary, a year, a user', 'daily, 30 days, all users']) {
      const [, median, , aim, bare, ratio] = rowOf(output, `${name} `);
      expect(aim).toBe('50');
      for (const value of [median, bare, ratio]) expect(Number(value)).toBeGreaterThan(0);
    }
    const [, rate, , , share, aim] = rowOf(output, 'settle_usage');
    expect(Number(rate)).toBeGreaterThan(0);
    expect(Number(share)).toBeGreaterThan(0);
    expect(aim).toBe('5000');
  });

  test('runs the fleet benchmark', async () => {
    const output = await bench('fleet', ['--runs=5']);
    for (const view of ['graph', 'traces', 'costs, 7d', 'colony, tree']) {
      const [, median, , aim, , bare, ratio] = rowOf(output, `${view} `);
      expect(aim).toBe('100');
      for (const value of [median, bare, ratio]) expect(Number(value)).toBeGreaterThan(0);
    }
  });

  test('runs the ai benchmark without other gateways', async () => {
    const output = await bench('ai', ['--rounds=1', '--seconds=0.5', '--warmup=0.5', '--against=']);
    const [over, streamedOver, fastest] = output
      .split('| way')
      .slice(1)
      .map((table) => rowOf(table, 'this product'));
    for (const cell of [over?.[4], streamedOver?.[4], fastest?.[1]]) {
      expect(Number(cell)).not.toBeNaN();
    }
    expect(output).toMatch(/(\d+) calls answered by this product, \1 usage records/);
  });

  test('runs the footprint benchmark', async () => {
    const output = await bench('footprint', ['--agents=1', '--seconds=1', '--settle=0']);
    const [, megabytes, withAgents, cpu] = rowOf(output, 'all');
    for (const value of [megabytes, withAgents, cpu]) expect(Number(value)).not.toBeNaN();
    expect(rowOf(output, 'aim')).toEqual(['aim, at most', '250', '250', '0.5', '0.5']);
  });

  test('runs the supervise benchmark', async () => {
    const output = await bench('supervise', [
      '--agents=20',
      '--interval=2',
      '--seconds=4',
      '--settle=1',
    ]);
    const [, cores, aim] = rowOf(output, 'worker, cores');
    expect(Number(cores)).toBeGreaterThan(0);
    expect(aim).toBe('0.5');
    expect(Number(rowOf(output, 'probes a second, made')[1])).toBeGreaterThan(0);
    expect(Number(rowOf(output, 'worker over the bare loop')[1])).toBeGreaterThan(0);
    expect(rowOf(output, 'history events of an agent an hour')[1]).toBe('0.00');
  });
});

describe('benchmarks that run one after another on one platform', () => {
  const cleanups: Parameters<AtEnd>[0][] = [];
  let platform: BenchPlatform;
  beforeAll(async () => {
    platform = await BenchPlatform.withoutContainers((cleanup) => cleanups.push(cleanup));
  });
  afterAll(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });

  test('runs the http benchmark', async () => {
    const output = await bench(
      'http',
      ['--rounds=1', '--seconds=0.5', '--warmup=0.5'],
      platform.shared,
    );
    for (const name of ['/api/agents', '/api/auth/session']) {
      const [, , , , , ratio, aim] = rowOf(output, name);
      expect(Number(ratio)).toBeGreaterThan(0);
      expect(aim).toBe('0.8');
    }
  });

  test('runs the mcp benchmark', async () => {
    const sizes = ['--rounds=1', '--seconds=0.5', '--warmup=0.5'];
    const [, , , , , ratio, aim] = rowOf(await bench('mcp', sizes, platform.shared), 'agents_list');
    expect(Number(ratio)).toBeGreaterThan(0);
    expect(aim).toBe('0.6');
  });

  test('runs the session benchmark', async () => {
    const output = await bench('session', ['--sessions=1'], platform.shared);
    for (const way of ['opening', 'closing']) {
      const [, platform, bare, over, aim] = rowOf(output, way);
      for (const figure of [platform, bare, over]) expect(Number(figure)).toBeGreaterThan(0);
      expect(aim).toBe('1.3');
    }
  });

  test('runs the auth benchmark', async () => {
    const output = await bench(
      'auth',
      ['--answers=2', '--signins=2', '--rounds=1', '--seconds=0.5', '--warmup=0.5'],
      platform.shared,
    );
    for (const way of ['login', 'forgot-password', 'reset-password']) {
      const [, , , ratio, aim] = rowOf(output, `/api/auth/${way}`);
      expect(Number(ratio)).toBeGreaterThan(0);
      expect(aim).toBe('0.95 to 1.05');
    }
    expect(rowOf(output, 'sign-ins')[4]).toBe('0.9');
    expect(Number(rowOf(output, 'sign-ins')[2])).toBeGreaterThan(0);
    expect(Number(rowOf(output, '/api/keys/validate')[3])).toBeGreaterThan(0);
  });
});
