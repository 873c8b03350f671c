import type { RequestListener } from 'node:http';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Listening } from '../../api/http/server.js';
import { createSummarizer } from '../../api/summarizer/summarizer.js';
import { createWeb } from '../../api/web/web.js';
import { withOwnSummarizer } from '../../dev/own-summarizer.js';
import { summarizerActions } from '../../src/gateway/summarizer.js';
import { OutboundClient } from '../../src/platform/outbound/outbound.js';
import { allowedDestinations } from '../../src/platform/outbound/allowed-places.js';
import { Pages } from '../../src/pages/pages.js';
import { loadSummarizerSettings } from '../../src/settings.js';
import { databaseAlone } from '../support/dependencies.js';
import { call } from '../support/http.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { readingProgram } from '../support/reading-program.js';
import { stub, type StubService } from './stub-service.js';
import { booksOf, openSession, type TestSession } from './support.js';

const attack = { tags: 'attack' };

const PATH = '/api/v1/gateway';
const PRICE = 5_000n;

const HTML = `<!doctype html><html><head><title>Rivers</title></head>
<body><main><h1>Rivers</h1><p>They flow to <a href="/sea">the sea</a>.</p></main></body></html>`;

let database: TestDatabase;
let site: StubService;
let pages: Pages;
let summarizer: Listening;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
beforeAll(async () => {
  database = await testDatabase();
  site = await stub(({ url }, response) =>
    url === '/away'
      ? response.writeHead(404).end()
      : response.writeHead(200, { 'content-type': 'text/html' }).end(HTML),
  );
  const allow = allowedDestinations.parse(site.place);
  pages = new Pages({ outbound: new OutboundClient({ allow }), program: readingProgram() });
  const settings = loadSummarizerSettings({});
  const log = pino({ level: 'silent' });
  summarizer = await createSummarizer({ ...settings, pages, log }).listen('127.0.0.1', 0);
  alone = await databaseAlone(database, log, { SUMMARIZER_URL: summarizer.url });
  web = await createWeb(alone.dependencies).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await web?.close();
  await alone?.close();
  await summarizer?.close();
  await pages?.close();
  await site?.close();
  await database?.close();
});

const buy = ({ headers }: TestSession, action: string, input: unknown) =>
  call(web.url, 'POST', PATH, { body: { plugin: 'summarizer', action, input }, headers });

test('offers both summarizer actions at half a cent', async () => {
  const { body } = await call(web.url, 'GET', PATH);
  const offered = body.plugins.filter(({ plugin }: { plugin: string }) => plugin === 'summarizer');
  expect(offered).toMatchObject([
    { action: 'summarize', price: '0.005000', input: { required: ['url'] } },
    { action: 'extract', price: '0.005000', input: { required: ['url'] } },
  ]);
});

test('charges each successful summarizer run once', async () => {
  const session = await openSession(database.db, 3n * PRICE);
  const url = `${site.url}/rivers`;
  const summary = await buy(session, 'summarize', { url });
  expect([summary.status, summary.body.result]).toEqual([
    200,
    {
      url,
      title: 'Rivers',
      description: '',
      headings: ['Rivers'],
      paragraphs: ['They flow to the sea.'],
      wordCount: expect.any(Number),
      fetchedAt: expect.any(String),
    },
  ]);
  const extract = await buy(session, 'extract', { url });
  expect([extract.status, extract.body.result.links]).toEqual([
    200,
    [{ href: `${site.url}/sea`, text: 'the sea' }],
  ]);
  const { delivered, held, vouchers } = await booksOf(database.db, session);
  expect([delivered, held, vouchers.length]).toEqual([2n * PRICE, 0n, 2]);
});

test('charges nothing for failed summarizer runs and returns their error', async () => {
  const session = await openSession(database.db, 3n * PRICE);
  const answers = [
    await buy(session, 'summarize', { url: 'http://127.0.0.1:1/' }),
    await buy(session, 'summarize', { url: 'ftp://example.com/' }),
    await buy(session, 'extract', { url: `${site.url}/away` }),
    await buy(session, 'extract', { url: '' }),
    await buy(session, 'extract', { url: 'http://example.com/', more: 1 }),
    await buy(session, 'read', { url: site.url }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 502, 400, 400, 404]);
  expect(answers[2]?.body.error).toMatch(/^summarizer extract failed: ./);
  const { delivered, held, vouchers } = await booksOf(database.db, session);
  expect([delivered, held, vouchers]).toEqual([0n, 0n, []]);
});

test('limits the refused runs of a buyer, over all addresses', { tags: 'attack' }, async () => {
  const [greedy, other] = [
    await openSession(database.db, PRICE),
    await openSession(database.db, PRICE),
  ];
  let address = 0;
  const statusOf = async ({ headers }: TestSession) => {
    const from = { 'x-forwarded-for': `198.51.100.${address++}` };
    const body = {
      plugin: 'summarizer',
      action: 'extract',
      input: { url: 'ftp://example.com/' },
    };
    return (await call(web.url, 'POST', PATH, { body, headers: { ...headers, ...from } })).status;
  };
  for (let n = 0; n < 100; n++) expect(await statusOf(greedy)).toBe(400);
  expect(await statusOf(greedy)).toBe(429);
  expect(await statusOf(other)).toBe(400);
});

test('sells no summarizer actions when no summarizer runs', async () => {
  const none = await databaseAlone(database);
  try {
    const sold = await none.dependencies.gateway.catalogue.list();
    expect(sold.filter(({ plugin }) => plugin === 'summarizer')).toEqual([]);
  } finally {
    await none.close();
  }
});

test("sets SUMMARIZER_URL to npm start's own summarizer unless a URL is set", () => {
  const env = { HOST: '0.0.0.0', SUMMARIZER_PORT: '3107' };
  const { http: own } = loadSummarizerSettings({ ...env, NODE_ENV: 'production' });
  expect(withOwnSummarizer(env, own).SUMMARIZER_URL).toBe('http://127.0.0.1:3107');
  const reported = { ...env, SUMMARIZER_URL: 'http://summarizer.internal' };
  expect(withOwnSummarizer(reported, own)).toEqual(reported);
  expect(withOwnSummarizer(env, { ...own, summarizerPort: 0 })).toEqual(env);
});

test("names each buyer to the summarizer, with the summarizer's key", attack, async () => {
  const seen: (string | undefined)[][] = [];
  const posing = await stub(({ headers }, response) => {
    seen.push([headers.authorization, String(headers['x-buyer'])]);
    response.writeHead(500, { 'content-type': 'application/json' }).end('{}');
  });
  const key = 'k'.repeat(32);
  const sold = await databaseAlone(database, undefined, {
    SUMMARIZER_URL: posing.url,
    SUMMARIZER_KEY: key,
  });
  const { close, url } = await createWeb(sold.dependencies).listen('127.0.0.1', 0);
  const sessions = [await openSession(database.db, PRICE), await openSession(database.db, PRICE)];
  for (const { headers } of sessions) {
    const body = { plugin: 'summarizer', action: 'extract', input: { url: site.url } };
    await call(url, 'POST', PATH, { body, headers });
  }
  expect(seen).toEqual(sessions.map(({ id }) => [`Bearer ${key}`, `session%3A${id}`]));
  await close();
  await sold.close();
  await posing.close();
});

test('rejects malformed summarizer responses and follows no redirects', async () => {
  const other = await stub((_, response) => response.end('{}'));
  const answers: RequestListener[] = [
    (_, response) => response.writeHead(302, { location: other.url }).end(),
    (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
    (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(HTML),
    (_, response) => response.destroy(),
  ];
  for (const answer of answers) {
    const posing = await stub(answer);
    const [action] = summarizerActions({ url: posing.url, key: undefined });
    const { signal } = new AbortController();
    await expect(
      action?.run(
        { url: site.url },
        { id: 'debit', buyer: 'buyer', idempotencyKey: 'key', signal },
      ),
    ).rejects.toMatchObject({
      status: 502,
    });
    expect(posing.asked).toEqual(['/api/summarize']);
    await posing.close();
  }
  expect(other.asked).toEqual([]);
  await other.close();
});
