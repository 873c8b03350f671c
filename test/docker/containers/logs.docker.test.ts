import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LogLine, LogOptions } from '../../../src/docker/containers/container-logs.js';
import { InvalidCursorError } from '../../../src/docker/containers/container-errors.js';
import { gatewayHealth } from '../../../src/docker/containers/gateway-probe.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';
import { until } from '../../support/until.js';

const fixture = testDocker();
const { containers, host } = fixture;
let agentId: string;
let port: number;

beforeAll(async () => {
  const spec = await fixture.spec({
    image: await ensureTestImage(fixture.docker),
    env: { PRINT_LINES: '20' },
  });
  ({ agentId, port } = spec);
  await host.networks.ensure(spec);
  await host.volumes.ensure(spec, 'test');
  await containers.ensure(spec);
  await containers.start(agentId);
  await until(async () => (await gatewayHealth(port, { timeoutMs: 500 })).healthy);
});
afterAll(() => fixture.close());

async function collect(options: LogOptions, count = Infinity): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for await (const line of containers.logs(agentId, options)) {
    lines.push(line);
    if (lines.length === count) break;
  }
  return lines;
}

async function print(order: { lines: number; stream?: string; text?: string }): Promise<void> {
  const body = JSON.stringify({ print: order });
  const signal = AbortSignal.timeout(30_000);
  await fetch(`http://127.0.0.1:${port}/test`, { method: 'POST', body, signal });
}

it('returns each line once with its time and stream, oldest first', async () => {
  await print({ lines: 3, stream: 'stderr', text: 'bad' });
  const lines = await until(async () => {
    const all = await collect({});
    return all.some(({ line }) => line === 'bad 3') && all;
  });
  const numbered = lines.filter(({ line }) => line.startsWith('line '));
  expect(numbered.map(({ line }) => line)).toEqual(
    Array.from({ length: 20 }, (_, index) => `line ${index + 1}`),
  );
  expect(lines.filter(({ stream }) => stream === 'stderr').map(({ line }) => line)).toEqual([
    'bad 1',
    'bad 2',
    'bad 3',
  ]);
  for (const { timestamp } of lines) expect(timestamp).toMatch(/^\d{4}-.*T.*\.\d{9}Z$/);
});

it('begins with the last lines if a tail is requested', async () => {
  const all = await collect({});
  expect(await collect({ tail: 2 })).toMatchObject(
    all.slice(-2).map(({ timestamp, line }) => ({ timestamp, line })),
  );
});

it('resumes after any line without a gap or a repeat', async () => {
  const all = await collect({});
  for (const [index, { cursor }] of all.entries()) {
    expect(await collect({ since: cursor })).toEqual(all.slice(index + 1));
  }
});

it('follows from a cursor while lines are written to both streams', async () => {
  const before = await collect({});
  const since = before[4]?.cursor ?? '';
  const abort = new AbortController();
  const expected = before.length - 5 + 400;
  const following = collect({ since, follow: true, signal: abort.signal }, expected);
  await Promise.all([
    print({ lines: 200, text: 'out' }),
    print({ lines: 200, stream: 'stderr', text: 'err' }),
  ]);
  const followed = await following;
  abort.abort();
  expect(followed).toEqual((await collect({})).slice(5));
});

it('stops following when it is aborted and when the container ends', async () => {
  const abort = new AbortController();
  let received = 0;
  for await (const line of containers.logs(agentId, {
    tail: 1,
    follow: true,
    signal: abort.signal,
  })) {
    expect(line.line).not.toBe('');
    received++;
    abort.abort();
  }
  expect(received).toBe(1);

  const ended = collect({ tail: 1, follow: true });
  await containers.kill(agentId);
  expect((await ended).length).toBeGreaterThan(0);
});

it('splits a line longer than the limit into pieces and resumes between them', async () => {
  await containers.start(agentId);
  await until(async () => (await gatewayHealth(port, { timeoutMs: 500 })).healthy);
  const text = 'x'.repeat(40_000);
  await print({ lines: 1, text });
  const pieces = await until(async () => {
    const found = (await collect({})).filter(({ line }) => line.startsWith('xxx'));
    return found.length >= 3 && found;
  });
  for (const { line } of pieces) expect(line.length).toBeLessThanOrEqual(16 * 1024);
  expect(pieces.map(({ line }) => line).join('')).toBe(`${text} 1`);
  expect(await collect({ since: pieces[0]?.cursor ?? '' }, 2)).toEqual(pieces.slice(1, 3));
  expect(pieces.map(({ isCut }) => isCut)).toEqual([true, true, undefined]);
  expect(pieces.map(({ continues }) => continues)).toEqual([
    undefined,
    ...pieces.slice(0, 2).map(({ line }) => line),
  ]);
});

it('begins a tail between pieces with their cursors and the text before them', async () => {
  const all = await collect({});
  const pieces = all.filter(({ line }) => line.startsWith('xxx')).slice(-3);
  const at = all.findIndex(({ cursor }) => cursor === pieces[1]?.cursor);
  expect(await collect({ tail: all.length - at })).toEqual(all.slice(at));
  const abort = new AbortController();
  const followed = await collect(
    { tail: all.length - at, follow: true, signal: abort.signal },
    all.length - at,
  );
  abort.abort();
  expect(followed).toEqual(all.slice(at));
});

it('replaces each byte of a character that is split by a cut', async () => {
  // The first piece ends after the first byte of a character of two bytes.
  await print({ lines: 1, text: `y${'ä'.repeat(9_000)}` });
  const pieces = await until(async () => {
    const found = (await collect({})).filter(({ line }) => /^[yä\uFFFD]{2}/.test(line));
    return found.length === 2 && found;
  });
  expect(pieces[0]?.line.slice(-3)).toBe('ää\uFFFD');
  expect(pieces[1]?.line.slice(0, 3)).toBe('\uFFFDää');
});

it('returns the lines that a replaced container wrote after the cursor', async () => {
  const last = (await collect({ tail: 1 }))[0];
  const spec = await fixture.spec({
    image: await ensureTestImage(fixture.docker),
    env: { PRINT_LINES: '2' },
  });
  await containers.remove(agentId);
  await host.networks.remove(agentId);
  const replacement = { ...spec, agentId };
  await host.networks.ensure(replacement);
  await containers.ensure(replacement);
  await containers.start(agentId);
  const since = last?.cursor;
  expect((await collect({ since, follow: true }, 2)).map(({ line }) => line)).toEqual([
    'line 1',
    'line 2',
  ]);
});

it('refuses a cursor that it did not issue', async () => {
  await expect(collect({ since: 'yesterday' })).rejects.toBeInstanceOf(InvalidCursorError);
});
