// @module-tag attack
import { once } from 'node:events';
import http, { type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createSummarizer } from '../../../api/summarizer/summarizer.js';
import { OutboundClient } from '../../../src/platform/outbound/outbound.js';
import { allowedDestinations } from '../../../src/platform/outbound/allowed-places.js';
import { Pages, QueueFullError, type PageBounds } from '../../../src/pages/pages.js';
import { loadSummarizerSettings } from '../../../src/settings.js';
import { readingProgram } from '../../support/reading-program.js';

/** Requests that the site has received and not answered yet. */
const held = new Map<string, ServerResponse>();
const server = http.createServer(({ url = '' }, response) => void held.set(url, response));
const used: Pages[] = [];
let site: string;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await Promise.all(used.map((pages) => pages.close()));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function pagesWithin(bounds: Partial<PageBounds>): Pages {
  const outbound = new OutboundClient({
    allow: allowedDestinations.parse(site.slice('http://'.length)),
  });
  // A long limit, so that no page times out on a busy machine.
  const pages = new Pages({
    outbound,
    program: readingProgram(),
    bounds: { fetchMs: 120_000, ...bounds },
  });
  used.push(pages);
  return pages;
}

const reading = (pages: Pages, client: string, path: string) =>
  pages.read('read', `${site}${path}`, { client, signal: new AbortController().signal });

function answer(path: string): void {
  held.get(path)?.writeHead(200, { 'content-type': 'text/html' }).end('<p>Here.</p>');
}

test.each([
  ['one address', ['203.0.113.1', '203.0.113.1', '203.0.113.1'], '203.0.113.2'],
  ['a /64', ['2001:db8::1', '2001:db8::2', '2001:db8:0:0:ffff::3'], '2001:db8:0:1::1'],
])(
  'gives the next place to another client while clients of %s wait',
  async (_of, clients, next) => {
    held.clear();
    const pages = pagesWithin({ atOnce: 2 });
    const many = clients.map((client, index) => reading(pages, client, `/a${index + 1}`));
    await expect.poll(() => held.has('/a1')).toBe(true);
    const other = reading(pages, next, '/b1');
    await expect.poll(() => held.has('/b1')).toBe(true);
    // These requests arrived earlier but wait, as their client already has half of the places.
    expect([held.has('/a2'), held.has('/a3')]).toEqual([false, false]);
    answer('/b1');
    await expect(other).resolves.toMatchObject({ value: { text: 'Here.' } });
    for (const path of ['/a1', '/a2', '/a3']) {
      await expect.poll(() => held.has(path)).toBe(true);
      answer(path);
    }
    expect((await Promise.all(many)).map(({ value }) => value.text)).toEqual([
      'Here.',
      'Here.',
      'Here.',
    ]);
  },
);

test('limits waiting requests: refuses the next at once, and serves it when a place is free', async () => {
  const pages = pagesWithin({ atOnce: 2, waiting: 1 });
  const one = reading(pages, '203.0.113.3', '/c1');
  const two = reading(pages, '203.0.113.3', '/c2');
  await expect(reading(pages, '203.0.113.3', '/c3')).rejects.toBeInstanceOf(QueueFullError);
  expect(held.has('/c3')).toBe(false);
  for (const path of ['/c1', '/c2']) {
    await expect.poll(() => held.has(path)).toBe(true);
    answer(path);
  }
  await Promise.all([one, two]);
  const later = reading(pages, '203.0.113.3', '/c4');
  await expect.poll(() => held.has('/c4')).toBe(true);
  answer('/c4');
  await expect(later).resolves.toMatchObject({ value: { text: 'Here.' } });
});

test('ends the fetch of a client that leaves if no other client waits for it, even with time left', async () => {
  const pages = pagesWithin({ fetchMs: 100_000_000 });
  const [leaving, staying] = [new AbortController(), new AbortController()];
  const ask = (path: string, { signal }: AbortController) =>
    pages.read('read', `${site}${path}`, { client: '203.0.113.4', signal });
  const left = ask('/left', leaving);
  const [shared, stays] = [ask('/shared', leaving), ask('/shared', staying)];
  await expect.poll(() => held.has('/left') && held.has('/shared')).toBe(true);
  await expect.poll(() => pages.waitingFor(`${site}/shared`)).toBe(2);
  const closed = new Promise((resolve) => held.get('/left')?.on('close', resolve));
  leaving.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  await expect(shared).rejects.toThrow('left');
  await closed;
  answer('/shared');
  await expect(stays).resolves.toMatchObject({ value: { text: 'Here.' } });
});

test('counts the time that a page waits for a place at its host', async () => {
  const fetchMs = 987_654;
  const clocks: AbortController[] = [];
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const clock = vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    if (ms !== fetchMs) return timeout(ms);
    const controller = new AbortController();
    clocks.push(controller);
    return controller.signal;
  });
  try {
    const pages = pagesWithin({ perHost: 1, fetchMs });
    const first = reading(pages, '203.0.113.5', '/d1');
    await expect.poll(() => held.has('/d1')).toBe(true);
    const ofFirst = clocks.length;
    const second = reading(pages, '203.0.113.5', '/d2');
    await expect.poll(() => pages.waitingFor(`${site}/d2`)).toBe(1);
    // The timeout of the fetch, which other clients might share, runs as well.
    expect(clocks.length).toBe(2 * ofFirst);
    clocks.at(-1)?.abort(new DOMException('late', 'TimeoutError'));
    await expect(second).rejects.toMatchObject({ code: 'TIMEOUT' });
    const third = reading(pages, '203.0.113.5', '/d3');
    await expect.poll(() => pages.waitingFor(`${site}/d3`)).toBe(1);
    answer('/d1');
    await first;
    await expect.poll(() => held.has('/d3')).toBe(true);
    expect(held.has('/d2')).toBe(false);
    answer('/d3');
    await third;
  } finally {
    clock.mockRestore();
  }
});

test('answers 503 with Retry-After when the queue is full', async () => {
  const { chain, http: settings } = loadSummarizerSettings({});
  const pages = pagesWithin({ atOnce: 1, waiting: 0 });
  const only = reading(pages, '203.0.113.6', '/only');
  await expect.poll(() => held.has('/only')).toBe(true);
  const listener = createSummarizer({
    pages,
    http: settings,
    chain,
    log: pino({ level: 'silent' }),
  });
  const listening = await listener.listen('127.0.0.1', 0);
  try {
    const response = await fetch(`${listening.url}/api/read`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ url: `${site}/full` }),
    });
    expect([response.status, response.headers.get('retry-after'), held.has('/full')]).toEqual([
      503,
      '5',
      false,
    ]);
    expect((await fetch(`${listening.url}/health`)).status).toBe(200);
    answer('/only');
    await only;
  } finally {
    await listening.close();
  }
});
