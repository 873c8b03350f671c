// @module-tag attack
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { allowedDestinations } from '../../src/platform/outbound/allowed-places.js';
import { OutboundClient } from '../../src/platform/outbound/outbound.js';
import { Pages, QueueFullError } from '../../src/pages/pages.js';

const program = pathToFileURL(path.join(projectRoot, 'test', 'support', 'reported-reader.mjs'));
const MB = 1024 ** 2;

/** Requests received by the site, in order. */
let asked: string[];
let server: http.Server;
let port: number;
let pages: Pages;
beforeEach(async () => {
  asked = [];
  server = http.createServer(({ url = '' }, response) => {
    asked.push(url);
    if (url.startsWith('/held')) return;
    response
      .writeHead(200, { 'content-type': 'text/html', 'cache-control': 'max-age=300' })
      .end(`letters ${url.slice(1)}`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  port = (server.address() as AddressInfo).port; // a TCP address is never a string
  // Default limits; every name resolves to the test site.
  const resolve = () => Promise.resolve(['127.0.0.1']);
  const outbound = new OutboundClient({
    allow: allowedDestinations.parse(`127.0.0.1:${port}`),
    resolve,
  });
  pages = new Pages({ outbound, program });
});
afterEach(async () => {
  await pages.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const NEVER = new AbortController().signal;

test(
  'limits a page to 10 s, fetches 32 concurrently and queues 200',
  { timeout: 90_000 },
  async () => {
    const clocks: AbortController[] = [];
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      if (ms !== 10_000) return timeout(ms);
      const clock = new AbortController();
      clocks.push(clock);
      return clock.signal;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    // Reads a page of another host for another client.
    const read = (each: number) =>
      pages.read('read', `http://page-${each}.test:${port}/held-${each}`, {
        client: `203.0.113.${each}`,
        signal: NEVER,
      });
    const many = Promise.allSettled(Array.from({ length: 32 + 200 }, (_, each) => read(each)));
    const last = read(232).catch((error: unknown) => error);
    await expect.poll(() => asked.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(32);
    expect(asked).toHaveLength(32);
    expect(clocks.length).toBeGreaterThanOrEqual(32 + 200);
    for (const clock of clocks) clock.abort(new DOMException('late', 'TimeoutError'));
    expect(await last).toBeInstanceOf(QueueFullError);
    const codes = (await many).map((one) => one.status === 'rejected' && one.reason.code);
    expect(codes).toEqual(Array(232).fill('TIMEOUT'));
  },
);

test('caches up to 64 MB of answers', { timeout: 120_000 }, async () => {
  // A letter counts for two bytes.
  const read = (bytes: number) =>
    pages.read('read', `http://page.test:${port}/${bytes / 2}`, {
      client: '203.0.113.1',
      signal: NEVER,
    });
  const sizes = [31 * MB, 32 * MB];
  for (const size of [...sizes, ...sizes]) await read(size);
  expect(asked).toEqual(sizes.map((size) => `/${size / 2}`));
  // Another answer evicts the oldest.
  await read(2 * MB);
  asked.length = 0;
  for (const size of [32 * MB, 31 * MB]) await read(size);
  expect(asked).toEqual([`/${(31 * MB) / 2}`]);
});
