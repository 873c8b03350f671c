import { once } from 'node:events';
import http, { type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createSummarizer } from '../../../api/summarizer/summarizer.js';
import type { Listening } from '../../../api/http/server.js';
import { OutboundClient } from '../../../src/platform/outbound/outbound.js';
import { allowedDestinations } from '../../../src/platform/outbound/allowed-places.js';
import { Pages } from '../../../src/pages/pages.js';
import { loadSummarizerSettings } from '../../../src/settings.js';
import { readingProgram } from '../../support/reading-program.js';

const PAGE = `<!doctype html><html lang="en"><head><base href="/base/">
<title>Rivers &amp; lakes</title><meta name="Description" content=" About
 water. "><meta property="og:title" content="Water"><meta name="author" content="Ada"></head>
<body><nav><a href="/">Home</a></nav><main><h1>Rivers</h1><h2>Lakes</h2><h2>Lakes</h2>
<p>Rivers flow, and <a href="sea.html#mouth">they end</a> in the sea.</p><p>Rivers flow on.</p>
<img src="river.jpg" alt="A river"><img src="data:image/gif;base64,R0" data-src="lake.jpg"></main>
<footer>Imprint</footer></body></html>`;

let answer: RequestListener;
let requests = 0;
const log: string[] = [];
const server = http.createServer((request, response) => {
  requests++;
  answer(request, response);
});
let site: string;
let pages: Pages;
let listening: Listening;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  site = `http://127.0.0.1:${port}`;
  const allow = allowedDestinations.parse(`127.0.0.1:${port}`);
  const outbound = new OutboundClient({ allow });
  // A long limit, so that no page times out on a busy machine.
  pages = new Pages({ outbound, program: readingProgram(), bounds: { fetchMs: 120_000 } });
  const { chain, http: settings } = loadSummarizerSettings({ RATE_LIMIT_REQUESTS: '100000' });
  const logger = pino({ level: 'debug' }, { write: (line: string) => void log.push(line) });
  const listener = createSummarizer({ pages, http: settings, chain, log: logger });
  listening = await listener.listen('127.0.0.1', 0);
});
afterEach(() => server.closeAllConnections());
afterAll(async () => {
  await listening?.close();
  await pages?.close();
  await new Promise((resolve) => server.close(resolve));
});

const html =
  (text: string, headers: http.OutgoingHttpHeaders = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(text);

/** Requests that count towards the rate limit. */
let asked = 0;
async function ask(path: string, body: unknown, signal?: AbortSignal) {
  const response = await fetch(`${listening.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
  asked++;
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: JSON.parse(text) };
}
const get = async (path: string) => (await fetch(`${listening.url}${path}`)).json();

test('describes the service and reports its health', async () => {
  expect(await get('/health')).toEqual({ status: 'ok', service: 'web-summarizer', version: '1.0' });
  expect(await get('/')).toEqual({
    service: 'web-summarizer',
    description: expect.any(String),
    endpoints: expect.objectContaining({
      'GET /docs': expect.any(String),
      'POST /api/summarize': expect.any(String),
    }),
    payment: { network: 'tempo', currency: 'pathUSD', payTo: null, note: expect.any(String) },
  });
});

test('names the payment address if configured', async () => {
  const payTo = `0x${'a1'.repeat(20)}`;
  const settings = loadSummarizerSettings({ TREASURY_ADDRESS: payTo });
  const paid = createSummarizer({ ...settings, pages, log: pino({ level: 'silent' }) });
  const { close, url } = await paid.listen('127.0.0.1', 0);
  onTestFinished(close);
  const { payment } = (await (await fetch(url)).json()) as { payment: { payTo: string } };
  expect(payment.payTo.toLowerCase()).toBe(payTo);
});

test('declares its endpoints and answers errors like the other listeners', async () => {
  const document = (await get('/openapi.json')) as { paths: Record<string, object> };
  expect(
    Object.entries(document.paths).flatMap(([path, of]) => [path, ...Object.keys(of)]),
  ).toEqual(
    ['/', 'get', '/health', 'get', '/api/summarize', 'post', '/api/extract', 'post'].concat([
      ...['/api/read', 'post'],
    ]),
  );
  const missing = await fetch(`${listening.url}/api/nothing`, {
    headers: { 'x-request-id': 'of-ada' },
  });
  expect([missing.status, missing.headers.get('x-request-id'), await missing.json()]).toEqual([
    ...[404, 'of-ada', { error: 'Not found' }],
  ]);
});

test('summarizes a page with exactly the fields of the contract', async () => {
  answer = html(PAGE);
  const url = `${site}/rivers#top`;
  const { body, headers, status } = await ask('/api/summarize', { url });
  expect(status).toBe(200);
  expect(body).toEqual({
    url,
    title: 'Rivers & lakes',
    description: 'About water.',
    headings: ['Rivers', 'Lakes'],
    paragraphs: ['Rivers flow, and they end in the sea.', 'Rivers flow on.'],
    wordCount: 16,
    fetchedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
  });
  expect(headers.get('content-location')).toBe(`${site}/rivers`);
});

test('extracts links, pictures and metadata relative to the page’s own base', async () => {
  answer = html(PAGE);
  const { body } = await ask('/api/extract', { url: site });
  expect(body).toEqual({
    url: site,
    links: [
      { href: `${site}/`, text: 'Home' },
      { href: `${site}/base/sea.html#mouth`, text: 'they end' },
    ],
    images: [
      { src: `${site}/base/river.jpg`, alt: 'A river' },
      { src: `${site}/base/lake.jpg`, alt: '' },
    ],
    meta: { description: 'About water.', 'og:title': 'Water' },
    fetchedAt: expect.any(String),
  });
});

test('returns the address as given, and resolves links by the final address', async () => {
  const moved = '<p>It is <a href="sea">by the sea</a>.</p><img src="river.jpg">';
  answer = (request, response) =>
    request.url === '/old/page'
      ? response.writeHead(301, { location: '/new/page?of=1' }).end()
      : html(moved)(request, response);
  const [url, found, sea] = [`${site}/old/page`, `${site}/new/page?of=1`, `${site}/new/sea`];
  for (const path of ['/api/summarize', '/api/extract', '/api/read']) {
    const { body, headers } = await ask(path, { url });
    expect([path, body.url, headers.get('content-location')]).toEqual([path, url, found]);
  }
  expect((await ask('/api/extract', { url })).body).toMatchObject({
    links: [{ href: sea, text: 'by the sea' }],
    images: [{ src: `${site}/new/river.jpg` }],
  });
  const { body } = await ask('/api/read', { url });
  expect([body.finalUrl, body.markdown]).toEqual([found, `It is [by the sea](${sea}).`]);
});

test('reads XHTML too, and follows only HTTP redirects', async () => {
  const before = requests;
  const refresh = '<meta http-equiv="refresh" content="0; url=/elsewhere"/>';
  answer = html(`${refresh}<p>Here.</p>`, { 'content-type': 'application/xhtml+xml' });
  const { body } = await ask('/api/read', { url: `${site}/xhtml` });
  expect([body.text, requests - before]).toEqual(['Here.', 1]);
});

test('reads the whole main content, as text and as Markdown', async () => {
  answer = html(PAGE);
  const { body } = await ask('/api/read', { url: site });
  expect(body).toEqual({
    url: site,
    finalUrl: `${site}/`,
    title: 'Rivers & lakes',
    byline: 'Ada',
    published: null,
    language: 'en',
    siteName: null,
    description: 'About water.',
    wordCount: 14,
    text: 'Rivers\n\nLakes\n\nLakes\n\nRivers flow, and they end in the sea.\n\nRivers flow on.',
    markdown: `# Rivers\n\n## Lakes\n\n## Lakes\n\nRivers flow, and [they end](${site}/base/sea.html#mouth) in the sea.\n\nRivers flow on.`,
    fetchedAt: expect.any(String),
  });
});

test('sends the page’s server its own name, and nothing about the client', async () => {
  const reported = new Promise<http.IncomingHttpHeaders>((resolve) => {
    answer = (request, response) => {
      resolve(request.headers);
      html('')(request, response);
    };
  });
  await ask('/api/summarize', { url: `${site}/headers` });
  expect(await reported).toEqual({
    host: new URL(site).host,
    'user-agent': 'AgentPlatform-WebSummarizer/1.0',
    accept: 'text/html, application/xhtml+xml',
    'accept-encoding': expect.stringContaining('gzip'),
    connection: expect.any(String),
  });
});

describe('refused pages', () => {
  test.each([
    {},
    { url: '' },
    { url: '  ' },
    { url: 7 },
    { url: null },
    { url: ['a'] },
    [],
    'text',
  ])('refuses a request without a url: %j', async (body) => {
    const { body: answered, status } = await ask('/api/summarize', body);
    expect([status, answered]).toEqual([400, { error: 'url required' }]);
  });

  test('reports the error status of the page’s server', async () => {
    answer = (_request, response) => response.writeHead(404).end();
    const { body, status } = await ask('/api/read', { url: site });
    expect([status, body]).toEqual([
      502,
      { error: 'The page answered with status 404', code: 'UPSTREAM_STATUS' },
    ]);
  });

  test('reports the content type of a response that is no page', async () => {
    answer = html('', { 'content-type': 'image/png' });
    const { body, status } = await ask('/api/read', { url: `${site}/picture` });
    expect([status, body]).toEqual([
      502,
      {
        error: 'The URL leads to image/png, not to text/html or application/xhtml+xml',
        code: 'NOT_HTML',
      },
    ]);
  });

  test.each([
    ['http://', 'INVALID_URL', 400],
    ['ftp://files.example/', 'URL_NOT_ALLOWED', 403],
    ['http://169.254.169.254/', 'URL_NOT_ALLOWED', 403],
  ])(
    '/api/read answers %s with %s and %i, the other operations with 500',
    async (url, ...reason) => {
      const { body, status } = await ask('/api/read', { url });
      expect([body.code, status]).toEqual(reason);
      for (const path of ['/api/summarize', '/api/extract']) {
        const other = await ask(path, { url });
        expect([other.body, other.status]).toEqual([body, 500]);
      }
    },
  );

  test('refuses a request body over 1 MB', async () => {
    const { body, status } = await ask('/api/read', { url: 'a'.repeat(1024 ** 2) });
    expect([status, body]).toEqual([413, { error: 'Request body is too large (at most 1 MB)' }]);
  });

  test('stops after five redirects', async () => {
    const before = requests;
    answer = (_request, response) => response.writeHead(302, { location: '/round' }).end();
    const { body } = await ask('/api/read', { url: `${site}/round` });
    expect([body.code, requests - before]).toEqual(['TOO_MANY_REDIRECTS', 6]);
  });

  test('refuses a page over 10 MB', { tags: 'attack' }, async () => {
    answer = html('a'.repeat(10 * 1024 ** 2 + 1));
    const { body } = await ask('/api/read', { url: `${site}/large` });
    expect(body).toEqual({ error: 'The page is larger than 10 MB', code: 'TOO_LARGE' });
  });

  test(
    'refuses an internal address without revealing its content',
    { tags: 'attack' },
    async () => {
      for (const url of [
        'http://169.254.169.254/latest/meta-data/',
        'http://10.0.0.1/',
        site.replace('127.0.0.1', '127.1.1.1'),
      ]) {
        const { body, status } = await ask('/api/extract', { url });
        expect([status, body]).toEqual([
          500,
          {
            error: 'The URL leads to a non-public address, which is not allowed',
            code: 'URL_NOT_ALLOWED',
          },
        ]);
      }
    },
  );
});

test('fetches a page once for concurrent requests', async () => {
  const before = requests;
  let answerBoth = (): void => undefined;
  const both = new Promise<void>((resolve) => (answerBoth = resolve));
  answer = (request, response) => {
    void both.then(() => html(PAGE)(request, response));
  };
  const url = `${site}/shared`;
  const inFlight = [ask('/api/read', { url }), ask('/api/summarize', { url })];
  await expect.poll(() => pages.waitingFor(url)).toBe(2);
  answerBoth();
  const [one, two] = await Promise.all(inFlight);
  expect([one?.status, two?.status, requests - before]).toEqual([200, 200, 1]);
  expect(one?.body.fetchedAt).toBe(two?.body.fetchedAt);
});

test('serves a page from the cache only if the page allows it', async () => {
  const before = requests;
  answer = html(PAGE, { 'cache-control': 'max-age=60' });
  const one = await ask('/api/read', { url: `${site}/kept` });
  const two = await ask('/api/read', { url: `${site}/kept#part` });
  expect([requests - before, two.body.fetchedAt]).toEqual([1, one.body.fetchedAt]);
  // The cache is separate for each action: extracting still returns the links.
  expect((await ask('/api/extract', { url: `${site}/kept` })).body.links).toHaveLength(2);
  answer = html(PAGE);
  await ask('/api/read', { url: `${site}/not-kept` });
  await ask('/api/read', { url: `${site}/not-kept` });
  expect(requests - before).toBe(4);
});

test('sends at most four concurrent requests to a host', { tags: 'attack' }, async () => {
  let now = 0;
  let most = 0;
  let answerAll = (): void => undefined;
  const all = new Promise<void>((resolve) => (answerAll = resolve));
  answer = (request, response) => {
    most = Math.max(most, ++now);
    void all.then(() => {
      now--;
      html(PAGE)(request, response);
    });
  };
  const urls = Array.from({ length: 12 }, (_, index) => `${site}/${index}`);
  const many = urls.map((url) => ask('/api/read', { url }));
  // All requests wait for the host, and the four in flight are held there.
  await expect.poll(() => urls.every((url) => pages.waitingFor(url) === 1)).toBe(true);
  await expect.poll(() => now).toBe(4);
  answerAll();
  const statuses = (await Promise.all(many)).map(({ status }) => status);
  expect([new Set(statuses), most]).toEqual([new Set([200]), 4]);
});

test('ends the fetch of a client that disconnects', { tags: 'attack' }, async () => {
  const leaving = new AbortController();
  const closed = new Promise((resolve) => {
    answer = (_request, response) => {
      response.on('close', resolve);
      response.writeHead(200, { 'content-type': 'text/html' }).write('<p>');
      leaving.abort();
    };
  });
  await expect(ask('/api/read', { url: `${site}/left` }, leaving.signal)).rejects.toThrow();
  await closed;
});

test('logs neither the text of a page nor an internal address', { tags: 'attack' }, async () => {
  answer = html('<p>the secret of the page</p>');
  await ask('/api/read', { url: `${site}/secret` });
  const { href } = new URL('http://10.11.12.13/inside');
  await ask('/api/read', { url: href });
  const all = log.join('\n');
  expect(all).not.toContain('the secret of the page');
  expect(all).not.toContain('10.11.12.13');
});

test('limits an anonymous client to 120 requests a minute', { tags: 'attack' }, async () => {
  const refused = async () => (await ask('/api/read', { url: 'ftp://none' })).status === 429;
  while (asked < 200 && !(await refused())) {
    // repeats until a request is refused
  }
  const { body, headers } = await ask('/api/read', { url: 'ftp://none' });
  expect([body, headers.get('ratelimit-limit'), asked > 120]).toEqual([
    { error: 'Too many requests, please slow down.' },
    '120',
    true,
  ]);
  expect((await fetch(`${listening.url}/health`)).status).toBe(200);
});
