// @module-tag attack
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DataFeeds } from '../../src/feeds/data-feeds.js';
import { loadFeeds } from '../../src/feeds/feed-list.js';
import { platformOutbound } from '../../src/platform/outbound/platform-outbound.js';
import { queryRows } from '../platform/database/catalog.js';
import { walletSite, type Person, type WalletSite } from '../money/wallets/support.js';

let site: WalletSite;
let ada: Person;
let folder: string;
let file: string;
let fetches: { readonly url: string; readonly headers: Record<string, unknown> }[] = [];
let answer: RequestListener;
let url: string;

const server = createServer((request, response) => {
  fetches.push({ url: request.url ?? '', headers: request.headers });
  answer(request, response);
});

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  // The address is an `AddressInfo`, because the server listens on a port.
  const { port } = server.address() as AddressInfo;
  folder = await mkdtemp(path.join(tmpdir(), 'aps-feeds-'));
  file = path.join(folder, 'feeds.json');
  const common = { name: 'News', description: 'All of it.', kind: 'rss' };
  url = `http://127.0.0.1:${port}/rss`;
  const feeds = [
    { ...common, id: 'news', url, refreshSeconds: 60 },
    { ...common, id: 'second', url, homepage: 'https://example.com' },
    { ...common, id: 'inside', url: 'http://127.0.0.1:1/rss' },
  ];
  await writeFile(file, JSON.stringify(feeds));
  site = await walletSite({ DATAFEEDS_FILE: file, OUTBOUND_ALLOW: `127.0.0.1:${port}` });
  ada = await site.person();
});
beforeEach(async () => {
  await owner('DELETE FROM data_feeds');
  fetches = [];
  answer = feedOf('1');
});
afterAll(async () => {
  await site?.close();
  server.close();
  server.closeAllConnections();
  await rm(folder, { recursive: true, force: true });
});

const owner = (sql: string) => queryRows(site.database.ownerUrl, sql);

/** Makes the next reading due. */
const due = () => owner(`UPDATE data_feeds SET tried_at = tried_at - interval '61 seconds'`);

function feedOf(...ids: string[]): RequestListener {
  const items = ids.map((id) => `<item><guid>${id}</guid><title>Item ${id}</title></item>`);
  return (request, response) => {
    if (request.headers['if-none-match'] === `"${ids.join()}"`)
      return response.writeHead(304).end();
    response.writeHead(200, { 'content-type': 'application/rss+xml', etag: `"${ids.join()}"` });
    response.end(`<rss version="2.0"><channel><title>t</title>${items.join('')}</channel></rss>`);
  };
}

const status =
  (code: number): RequestListener =>
  (_request, response) =>
    response.writeHead(code).end();

const read = (feed = 'news') => site.web(ada, 'GET', `/api/datafeeds?feed=${feed}`);
const idsOf = ({ body }: Awaited<ReturnType<typeof read>>): string[] =>
  body.items.map(({ id }: { id: string }) => id);

test('lists the feeds with their states, and fetches none of them', async () => {
  const { body, status: code } = await site.web(ada, 'GET', '/api/datafeeds');
  expect([code, body.count, fetches]).toEqual([200, 3, []]);
  expect(body.feeds[0]).toEqual({
    id: 'news',
    name: 'News',
    description: 'All of it.',
    kind: 'rss',
    homepage: null,
    refreshSeconds: 60,
    lastFetchedAt: null,
    status: 'pending',
  });
  expect(body.feeds[1]).toMatchObject({ homepage: 'https://example.com', refreshSeconds: 900 });
  expect((await site.web(undefined, 'GET', '/api/datafeeds')).status).toBe(401);
});

test('reads a feed, and answers an unknown one with 404', async () => {
  const { body, status: code } = await read();
  expect(code).toBe(200);
  expect(body).toMatchObject({ count: 1, stale: false, feed: { id: 'news', status: 'ok' } });
  expect(body.items).toEqual([
    { id: '1', title: 'Item 1', url: null, publishedAt: null, summary: null, value: null },
  ]);
  expect(body.feed.lastFetchedAt).toBe(body.fetchedAt);
  for (const unknown of ['nothing', '__proto__', '']) {
    expect(await read(unknown)).toMatchObject({ status: 404, body: { error: 'Feed not found' } });
  }
});

describe('fetches', () => {
  test('fetches are made once for all concurrent readers of all processes', async () => {
    const other = new DataFeeds({
      database: site.database.db,
      outbound: platformOutbound(site.dependencies.settings),
      feeds: loadFeeds(file),
    });
    const end = new AbortController().signal;
    const answers = await Promise.all([
      ...Array.from({ length: 25 }, async () => idsOf(await read())),
      ...Array.from({ length: 25 }, async () =>
        (await other.read('news', end)).items.map(({ id }) => id),
      ),
    ]);
    expect(answers).toEqual(answers.map(() => ['1']));
    expect(fetches).toHaveLength(1);
  });

  test('fetches are made at most once in an interval, with the validators of the last answer', async () => {
    const first = await read();
    answer = feedOf('2');
    expect(idsOf(await read())).toEqual(['1']);
    expect(fetches).toHaveLength(1);
    await due();
    answer = feedOf('1');
    const unchanged = await read();
    expect(fetches[1]?.headers).toMatchObject({ 'if-none-match': '"1"' });
    expect(idsOf(unchanged)).toEqual(['1']);
    expect(unchanged.body).toMatchObject({ stale: false });
    expect(Date.parse(unchanged.body.fetchedAt)).toBeGreaterThan(Date.parse(first.body.fetchedAt));
  });

  test('fetches name the time of the last change, for a server without tags', async () => {
    const lastModified = 'Sat, 28 Nov 2026 05:00:00 GMT';
    answer = (request, response) => {
      if (request.headers['if-modified-since'] === lastModified) {
        return response.writeHead(304).end();
      }
      response.writeHead(200, { ...RSS, 'last-modified': lastModified });
      response.end('<rss version="2.0"><channel><item><guid>1</guid></item></channel></rss>');
    };
    await read();
    await due();
    expect([idsOf(await read()), fetches.length]).toEqual([['1'], 2]);
    expect(fetches[1]?.headers).toMatchObject({ 'if-modified-since': lastModified });
    expect((await read()).body.stale).toBe(false);
  });

  test('fetches keep items that are no longer in the feed, behind the new ones', async () => {
    await read();
    await due();
    answer = feedOf('3', '2');
    expect(idsOf(await read())).toEqual(['3', '2', '1']);
  });

  test('fetches of a changed address start without the items of the former address', async () => {
    await read();
    await owner(`UPDATE data_feeds SET url = 'https://example.com/other'`);
    answer = feedOf('9');
    expect(idsOf(await read())).toEqual(['9']);
    expect(fetches[1]?.headers['if-none-match']).toBeUndefined();
  });

  test('fetches are repeated when the process that made one was killed', async () => {
    await owner(
      `INSERT INTO data_feeds (id, url, reading_until)
       VALUES ('news', '${url}', now() - interval '1 second')`,
    );
    expect(idsOf(await read())).toEqual(['1']);
  });
});

describe('a feed whose server fails', () => {
  test('a failing feed answers with its last items, marked as stale, until a fetch succeeds', async () => {
    await read();
    await due();
    answer = status(503);
    const stale = await read();
    expect([stale.status, idsOf(stale)]).toEqual([200, ['1']]);
    expect(stale.body).toMatchObject({ stale: true, feed: { status: 'failing' } });
    await due();
    answer = feedOf('2', '1');
    const again = await read();
    expect([idsOf(again), again.body.stale]).toEqual([['2', '1'], false]);
  });

  test('a feed that was never read is 502 with the reason', async () => {
    answer = status(500);
    for (let n = 0; n < 2; n += 1) {
      expect(await read()).toMatchObject({
        status: 502,
        body: { error: 'The feed could not be read: The page answered with status 500' },
      });
    }
    // The second reader waits for the next interval, too.
    expect(fetches).toHaveLength(1);
    const { body } = await site.web(ada, 'GET', '/api/datafeeds');
    expect(body.feeds[0]).toMatchObject({ status: 'failing', lastFetchedAt: null });
  });

  test.each<[string, RequestListener, RegExp]>([
    ['a page', (_, to) => to.writeHead(200, HTML).end('<p>'), /leads to text\/html/],
    ['no XML', (_, to) => to.writeHead(200, RSS).end('{}'), /its answer is .*not RSS/],
    [
      'too much',
      (_, to) => to.writeHead(200, RSS).end(Buffer.alloc(2_100_000)),
      /larger than 2 MB/,
    ],
    [
      'a private address',
      (_, to) => to.writeHead(302, INSIDE).end(),
      /not allowed|private|refused/i,
    ],
    [
      'endless redirects',
      (_, to) => to.writeHead(302, { location: '/rss' }).end(),
      /too many times/,
    ],
    ['half an answer', (_, to) => to.writeHead(200, LONG).end('<rss>'), /broke before the end/],
    ['a 304 without a question', status(304), /status 304/],
  ])('answers 502 with the reason for %s', async (_, listener, reason) => {
    answer = listener;
    const { body, status: code } = await read();
    expect(code).toBe(502);
    expect(body.error).toMatch(reason);
  });

  test('a feed is 502 after ten seconds of silence, and private addresses are never connected to', async () => {
    answer = () => undefined;
    const [silent, inside] = await Promise.all([read(), read('inside')]);
    expect(silent.body.error).toContain('its server did not answer within 10 seconds');
    expect([silent.status, inside.status]).toEqual([502, 502]);
    expect(inside.body.error).toMatch(/not allowed|private|refused/i);
  });
});

const RSS = { 'content-type': 'application/rss+xml' };
const HTML = { 'content-type': 'text/html' };
const LONG = { ...RSS, 'content-length': '1000' };
const INSIDE = { location: 'http://127.0.0.1:1/' };
