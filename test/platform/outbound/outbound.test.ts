import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http, { type RequestListener } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import tls from 'node:tls';
import zlib from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { decompressed } from '../../../src/platform/outbound/decompress.js';
import { OutboundClient, type OutboundCall } from '../../../src/platform/outbound/outbound.js';
import { allowedDestinations } from '../../../src/platform/outbound/allowed-places.js';
import type { Connect } from '../../../src/platform/outbound/connect.js';
import { OwnPlaces } from '../../../src/platform/outbound/own-places.js';
import { resolveName, type ResolveName } from '../../../src/platform/outbound/resolve-name.js';
import { FORGED_HOSTS, FORGED_URLS, LYING_ANSWERS } from './forged.js';

let answer: RequestListener = (_request, response) => response.end();
let connections = 0;
let requests = 0;
const server = http.createServer((request, response) => {
  requests++;
  answer(request, response);
});
server.on('connection', () => connections++);
let port: number;
let here: string;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  here = `http://127.0.0.1:${port}`;
});
afterEach(() => server.closeAllConnections());
afterAll(() => new Promise((resolve) => server.close(resolve)));

const CALL: OutboundCall = {
  headers: { 'user-agent': 'test' },
  maxRedirects: 5,
  maxBytes: 1024 ** 2,
  types: ['text/html'],
  signal: new AbortController().signal,
};

/** Forbidden connection attempts, recorded here instead of leaving the machine. */
const reached: unknown[] = [];
const nowhere: Connect = ({ host, port: its }) => {
  reached.push(`${host} ${its}`);
  return new net.Socket().destroy(new Error('nowhere'));
};
const onlyHere: Connect = (to) =>
  to.host === '127.0.0.1' && to.port === port ? net.connect(to) : nowhere(to);

/** Returns an Outbound that may reach only the test's own server. */
const outbound = (resolve: ResolveName = resolveName) =>
  new OutboundClient({
    allow: allowedDestinations.parse(`127.0.0.1:${port}`),
    connect: onlyHere,
    resolve,
  });
const refusing = (resolve: ResolveName = resolveName) =>
  new OutboundClient({ connect: nowhere, resolve });

const codeOf = (reading: Promise<unknown>) =>
  reading.then(
    () => 'read',
    (error: { code?: string; message?: string }) => error.code ?? error.message,
  );

/** The head of gzip, and one that a file name follows. */
const GZIP_HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
const GZIP_NAMED = Buffer.from([0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3]);

const html =
  (body: string | Buffer, headers: http.OutgoingHttpHeaders = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body);

describe('non-public addresses', { tags: 'attack' }, () => {
  const refusals = ['URL_NOT_ALLOWED', 'INVALID_URL'];

  afterEach(() => expect(reached.splice(0)).toEqual([]));

  test('covers at least 120 different spellings and addresses', () => {
    expect(new Set([...FORGED_HOSTS, ...FORGED_URLS]).size).toBeGreaterThanOrEqual(120);
  });

  test.each(FORGED_HOSTS)('refuses http://%s before a connection', async (host) => {
    const before = connections;
    for (const scheme of ['http', 'https']) {
      // Refused on the default port and on the test server's port.
      expect(refusals).toContain(await codeOf(refusing().get(`${scheme}://${host}/`, CALL)));
      const onPort = refusing().get(`${scheme}://${host}:${port}/`, CALL);
      expect(refusals).toContain(await codeOf(onPort));
    }
    expect(connections).toBe(before);
  });

  test.each(FORGED_URLS)('%j', async (url) => {
    expect(refusals).toContain(await codeOf(refusing().get(url, CALL)));
  });

  test.each(LYING_ANSWERS.map((addresses) => [addresses.join(', '), addresses] as const))(
    'refuses a name that resolves to %s',
    async (_text, addresses) => {
      const lying = refusing(() => Promise.resolve(addresses));
      expect(await codeOf(lying.get(`http://name.test:${port}/`, CALL))).toBe('URL_NOT_ALLOWED');
    },
  );

  const elsewhere = FORGED_URLS.filter((url) => !isWithin(url));
  test.each([...FORGED_HOSTS.map((host) => `http://${host}:1234/`), ...elsewhere])(
    'refuses a redirect to %j',
    async (location) => {
      // A header cannot contain line ends, and browsers ignore them in URLs.
      const sent = Buffer.from(location.replace(/[\n\t]/g, '')).toString('latin1');
      answer = redirect(sent);
      expect(refusals).toContain(await codeOf(outbound().get(here, CALL)));
    },
  );

  test('resolves a name once per connection and refuses a changed answer', async () => {
    const reported: string[] = [];
    const changing = outbound(() => {
      reported.push('asked');
      return Promise.resolve(reported.length === 1 ? ['127.0.0.1'] : ['127.0.0.1', '10.0.0.1']);
    });
    answer = (_request, response) => response.writeHead(302, { location: '/again' }).end();
    const code = await codeOf(changing.get(`http://name.test:${port}/`, CALL));
    expect([code, reported.length]).toEqual(['URL_NOT_ALLOWED', 2]);
  });

  test.each(['http_proxy', 'HTTP_PROXY', 'ALL_PROXY'])(
    'ignores proxies of the environment: %s',
    async (name) => {
      answer = html('direct');
      vi.stubEnv(name, 'http://127.0.0.1:9');
      vi.stubEnv('NODE_USE_ENV_PROXY', '1');
      onTestFinished(() => void vi.unstubAllEnvs());
      expect((await outbound().get(here, CALL)).body.toString()).toBe('direct');
    },
  );

  test('refuses forbidden ports, credentials and protocols of an allowed address', async () => {
    const allow = allowedDestinations.parse('127.0.0.0/8');
    const allowing = new OutboundClient({ allow, connect: nowhere });
    for (const url of ['http://127.0.0.1:22/', 'http://ada@127.0.0.1/', 'ftp://127.0.0.1/']) {
      expect(await codeOf(allowing.get(url, CALL))).toBe('URL_NOT_ALLOWED');
    }
  });
});

/** Reports whether a redirect to the URL stays on its server or leads to another public front page. */
const isWithin = (url: string) => {
  const base = 'http://public.test/';
  return (
    URL.canParse(url, base) &&
    ['public.test', '8.8.8.8'].includes(new URL(url, base).host) &&
    new URL(url, base).username === '' &&
    new URL(url, base).protocol === 'http:'
  );
};

describe('page requests', () => {
  test('reads a page by name and sends the server its host name', async () => {
    answer = (request, response) => html(request.headers.host ?? '')(request, response);
    const named = outbound(() => Promise.resolve(['127.0.0.1']));
    const { body, url } = await named.get(`http://name.test:${port}/a#b`, CALL);
    expect([body.toString(), url]).toEqual([`name.test:${port}`, `http://name.test:${port}/a`]);
  });

  test('falls back to the second address of a name when the first does not answer', async () => {
    answer = html('second');
    const allow = allowedDestinations.parse('127.0.0.0/8');
    const free = net.createServer().listen(0, '127.0.0.2');
    await once(free, 'listening');
    await new Promise((resolve) => free.close(resolve));
    const resolve = () => Promise.resolve(['127.0.0.2', '127.0.0.1']);
    const { body } = await new OutboundClient({ allow, resolve }).get(
      `http://name.test:${port}/`,
      CALL,
    );
    expect(body.toString()).toBe('second');
  });

  test('follows redirects, including a location in UTF-8', async () => {
    answer = (request, response) => {
      if (request.url === '/') {
        const location = Buffer.from('/schöne/../ü').toString('latin1');
        return response.writeHead(301, { location }).end();
      }
      return html('found')(request, response);
    };
    expect((await outbound().get(here, CALL)).url).toBe(`${here}/%C3%BC`);
  });

  test('follows a redirect with a location in latin-1', async () => {
    answer = (request, response) =>
      request.url === '/'
        ? response.writeHead(302, { location: '/\u00fc' }).end()
        : html('found')(request, response);
    expect((await outbound().get(here, CALL)).url).toBe(`${here}/%C3%BC`);
  });

  test.each([301, 302, 303, 307, 308])('follows a redirect with status %i', async (status) => {
    answer = (request, response) =>
      request.url === '/'
        ? response.writeHead(status, { location: '/there' }).end()
        : html('found')(request, response);
    expect((await outbound().get(here, CALL)).url).toBe(`${here}/there`);
  });

  test('ignores the location header of a successful response', async () => {
    answer = html('here', { location: '/there' });
    expect((await outbound().get(here, CALL)).url).toBe(`${here}/`);
  });

  const text = '<p>compressed</p>'.repeat(50);
  test.each([
    ['gzip', zlib.gzipSync(text)],
    ['x-gzip', zlib.gzipSync(text)],
    ['deflate', zlib.deflateSync(text)],
    ['deflate', zlib.deflateRawSync(text)],
    ['br', zlib.brotliCompressSync(text)],
    ['gzip, br', zlib.brotliCompressSync(zlib.gzipSync(text))],
    ['identity', Buffer.from(text)],
    ['none', Buffer.from(text)],
    ['UTF-8', Buffer.from(text)],
    ['none, gzip', zlib.gzipSync(text)],
    ['gzip', Buffer.concat([zlib.gzipSync(text), Buffer.from('more')])],
    ['gzip', Buffer.concat([zlib.gzipSync(text), Buffer.alloc(9)])],
    ['gzip', withGzipHead(zlib.gzipSync(text))],
    ['gzip', zlib.gzipSync(text).subarray(0, -4)],
  ])('decodes a page compressed as %s', async (encoding, bytes) => {
    answer = html(bytes, { 'content-encoding': encoding });
    expect((await outbound().get(here, CALL)).body.toString()).toBe(text);
  });

  test('decodes gzip that arrives byte by byte', async () => {
    const bytes = Buffer.concat([withGzipHead(zlib.gzipSync(text)), Buffer.from('more')]);
    async function* pieces() {
      for (const byte of bytes) yield await Promise.resolve(Buffer.of(byte));
    }
    const parts: Buffer[] = [];
    for await (const part of decompressed(pieces(), ['gzip'])) parts.push(part);
    expect(Buffer.concat(parts).toString()).toBe(text);
  });

  test.each([
    ['lines that end only with a line feed', 'HTTP/1.1 200 OK\nContent-Type: text/html\n\nfound'],
    ['a folded line', 'HTTP/1.1 200 OK\r\nContent-Type: text/html;\r\n charset=utf-8\r\n\r\nfound'],
    ['no reason', 'HTTP/1.1 200\r\nContent-Type: text/html\r\n\r\nfound'],
    [
      'no semicolon after the type',
      'HTTP/1.1 200 OK\r\nContent-Type: text/html charset=utf-8\r\n\r\nfound',
    ],
    ['the type twice', 'HTTP/1.1 200 OK\r\nContent-Type: text/html, text/html\r\n\r\nfound'],
  ])('reads an answer with %s', async (_what, bytes) => {
    answer = (request) => request.socket.end(bytes);
    const { body, headers } = await outbound().get(here, CALL);
    expect([headers['content-type']?.slice(0, 9), body.toString()]).toEqual(['text/html', 'found']);
  });

  // Node supports zstd from 22.15 on.
  test('decodes zstd if Node supports it, and otherwise reports an unknown encoding', async () => {
    const isKnown = 'createZstdDecompress' in zlib;
    let accepted: string | undefined;
    const bytes = zstdFrame(text, 23);
    answer = (request, response) => {
      accepted = String(request.headers['accept-encoding']);
      html(bytes, { 'content-encoding': 'zstd' })(request, response);
    };
    const reading = outbound().get(here, CALL);
    if (isKnown) expect((await reading).body.toString()).toBe(text);
    else {
      await expect(reading).rejects.toMatchObject({
        code: 'BAD_ENCODING',
        message: 'The page has an unsupported content encoding',
      });
    }
    expect(accepted?.includes('zstd')).toBe(isKnown);
  });

  test('decompresses many chunks without a leak warning from Node', async () => {
    const warnings: string[] = [];
    const note = (warning: Error) => warnings.push(warning.message);
    process.on('warning', note);
    const page = randomBytes(1024 ** 2);
    const bytes = zlib.gzipSync(page);
    async function* pieces() {
      const size = 32 * 1024;
      for (let at = 0; at < bytes.length; at += size) {
        yield await Promise.resolve(bytes.subarray(at, at + size));
      }
    }
    const parts: Buffer[] = [];
    for await (const part of decompressed(pieces(), ['gzip'])) parts.push(part);
    await new Promise(setImmediate);
    process.off('warning', note);
    expect(Buffer.concat(parts).equals(page)).toBe(true);
    expect(warnings).toEqual([]);
  });
});

test('reads a page after ten informational responses', async () => {
  answer = announced(10);
  expect((await outbound().get(here, CALL)).body.toString()).toBe('found');
});

describe('unreadable pages', () => {
  const cases: readonly (readonly [string, string, RequestListener])[] = [
    ['that answers 404', 'UPSTREAM_STATUS', (_request, response) => response.writeHead(404).end()],
    ['a picture', 'NOT_HTML', html('', { 'content-type': 'image/png' })],
    ['a page without a content type', 'NOT_HTML', (_request, response) => response.end('<p>')],
    [
      'a redirect without a location',
      'UPSTREAM_STATUS',
      (_request, response) => response.writeHead(304).end(),
    ],
    ['an endless redirect', 'TOO_MANY_REDIRECTS', redirect('/')],
    ['compressed as nobody does', 'BAD_ENCODING', html('', { 'content-encoding': 'compress' })],
    [
      'a gzip head that never ends',
      'BAD_ENCODING',
      html(Buffer.concat([GZIP_NAMED, Buffer.alloc(70_000, 'a')]), { 'content-encoding': 'gzip' }),
    ],
    ['compressed three times', 'BAD_ENCODING', html('', { 'content-encoding': 'gzip,gzip,gzip' })],
    ['not compressed as it says', 'BAD_ENCODING', html('<p>', { 'content-encoding': 'gzip' })],
    [
      'a zstd frame that requires 128 MB',
      'BAD_ENCODING',
      html(zstdFrame('<p>', 27), { 'content-encoding': 'zstd' }),
    ],
    ['over a megabyte', 'TOO_LARGE', html(Buffer.alloc(1024 ** 2 + 1, 'a'))],
    ['a truncated page', 'UNREACHABLE', html('<p>', { 'content-length': 100 })],
    ['a switch to another protocol', 'UNREACHABLE', upgrade],
    ['eleven informational responses', 'UNREACHABLE', announced(11)],
    ['an endless header', 'UNREACHABLE', html('', { 'x-long': 'a'.repeat(70_000) })],
  ];
  test.each(cases)('%s', { tags: 'attack', timeout: 60_000 }, async (_what, code, listener) => {
    answer = listener;
    expect(await codeOf(outbound().get(here, CALL))).toBe(code);
  });

  test('rejects a small page that decompresses beyond the limit', { tags: 'attack' }, async () => {
    const bomb = zlib.gzipSync(zlib.gzipSync(Buffer.alloc(50 * 1024 ** 2)));
    expect(bomb.length).toBeLessThan(1_000);
    answer = html(bomb, { 'content-encoding': 'gzip, gzip' });
    expect(await codeOf(outbound().get(here, CALL))).toBe('TOO_LARGE');
  });

  test('rejects a page whose decompression never ends', { tags: 'attack' }, async () => {
    answer = (_request, response) => {
      const packed = zlib.createGzip();
      const zeros = setInterval(() => packed.write(Buffer.alloc(CALL.maxBytes / 4)), 10);
      response.on('close', () => clearInterval(zeros));
      response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' });
      packed.on('data', (piece) => response.write(piece));
    };
    expect(await codeOf(outbound().get(here, CALL))).toBe('TOO_LARGE');
  });

  test(
    'rejects a page over the limit that is small once decompressed',
    { tags: 'attack' },
    async () => {
      const nothing = Buffer.from([0, 0, 0, 0xff, 0xff]);
      const many = Buffer.concat([GZIP_HEAD, ...Array<Buffer>(300_000).fill(nothing)]);
      expect(many.length).toBeGreaterThan(CALL.maxBytes);
      answer = html(many, { 'content-encoding': 'gzip' });
      expect(await codeOf(outbound().get(here, CALL))).toBe('TOO_LARGE');
    },
  );

  test('follows five redirects and rejects a sixth', async () => {
    answer = (request, response) => {
      const left = Number((request.url ?? '/').slice(1));
      if (left === 0) return html('found')(request, response);
      return response.writeHead(302, { location: `/${left - 1}` }).end();
    };
    expect((await outbound().get(`${here}/5`, CALL)).body.toString()).toBe('found');
    expect(await codeOf(outbound().get(`${here}/6`, CALL))).toBe('TOO_MANY_REDIRECTS');
  });

  test('rejects a URL longer than 8,192 characters', async () => {
    answer = html('found');
    const start = `${here}/`;
    const long = start.padEnd(8_192, 'a');
    expect((await outbound().get(long, CALL)).body.toString()).toBe('found');
    expect(await codeOf(outbound().get(`${long}a`, CALL))).toBe('INVALID_URL');
  });

  describe("the platform's own addresses", { tags: 'attack' }, () => {
    const OWN = ['93.184.215.14', '2606:2800:21f:cb07::1'];
    const ownUrls = ['https://App.example.test', 'http://backend:3001', `http://${OWN[0]}:3000`];
    const own = (addresses: readonly string[], allow = '') =>
      new OutboundClient({
        allow: allowedDestinations.parse(allow),
        connect: nowhere,
        ownAddresses: () => [...OWN, 'fe80::1%eth0'],
        ownUrls,
        resolve: () => Promise.resolve(addresses),
      });
    afterEach(() => reached.splice(0));

    test.each([
      ['https://app.example.test/', ['8.8.8.8']],
      ['https://APP.example.test./', ['8.8.8.8']],
      ['http://backend:80/', ['8.8.8.8']],
      ['http://backend:3001/', ['8.8.8.8']],
      ['http://93.184.215.14/', []],
      ['http://0x5db8d70e/', []],
      ['http://[2606:2800:21F:cb07:0:0:0:1]/', []],
      ['http://[64:ff9b::93.184.215.14]/', []],
      ['http://alias.test/', ['93.184.215.14']],
      ['http://alias.test/', ['8.8.8.8', '2606:2800:21f:cb07:0::1']],
    ])('refuses %s at %j before a connection', async (url, addresses) => {
      expect(await codeOf(own(addresses).get(url, CALL))).toBe('URL_NOT_ALLOWED');
      await expect(own(addresses).addressesOf(url, CALL.signal)).rejects.toThrow(
        'an address of the platform itself',
      );
      expect(reached).toEqual([]);
    });

    test('reaches them where OUTBOUND_ALLOW names their addresses', async () => {
      const named = own(['93.184.215.14'], '93.184.215.14:443');
      for (const url of ['https://app.example.test/', 'https://93.184.215.14/']) {
        expect(await codeOf(named.get(url, CALL))).toBe('UNREACHABLE');
      }
      expect(reached.splice(0)).toEqual(['93.184.215.14 443', '93.184.215.14 443']);
      expect(await codeOf(named.get('http://app.example.test/', CALL))).toBe('URL_NOT_ALLOWED');
      const other = own(['8.8.8.8'], '93.184.215.14');
      expect(await codeOf(other.get('https://app.example.test/', CALL))).toBe('URL_NOT_ALLOWED');
    });

    test('reaches other hosts of the same domain', async () => {
      expect(await codeOf(own(['8.8.8.8']).get('https://example.test/', CALL))).toBe('UNREACHABLE');
      expect(reached).toEqual(['8.8.8.8 443']);
    });

    test("refuses the addresses of this machine's network interfaces", () => {
      const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
      const places = new OwnPlaces([]);
      expect(addresses.filter(({ address }) => !places.hasAddress([address]))).toEqual([]);
      expect(places.hasAddress(['8.8.8.8'])).toBe(false);
    });

    test('reads the interfaces every five seconds, and refuses a new address from then on', () => {
      let [now, reads] = [0, 0];
      const addresses = ['93.184.215.14'];
      const read = () => (reads++, addresses);
      const places = new OwnPlaces([], read, () => now);
      for (; now < 5_000; now += 1_000) expect(places.hasAddress(['8.8.8.8'])).toBe(false);
      expect(reads).toBe(1);
      addresses.push('8.8.8.8');
      expect(places.hasAddress(['8.8.8.8'])).toBe(true);
      expect(reads).toBe(2);
    });
  });

  test('tries at most four addresses of a name', async () => {
    answer = html('found');
    const silent = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
    const allow = allowedDestinations.parse('127.0.0.0/8');
    const at = (addresses: readonly string[]) =>
      codeOf(
        new OutboundClient({ allow, resolve: () => Promise.resolve(addresses) }).get(
          `http://name.test:${port}/`,
          CALL,
        ),
      );
    expect(await at([...silent.slice(1), '127.0.0.1'])).toBe('read');
    expect(await at([...silent, '127.0.0.1'])).toBe('UNREACHABLE');
  });

  test.each(['name.test', 'name.test.'])(
    'sends the TLS server name for %s and rejects a failed handshake',
    async (host) => {
      let asked = '';
      const secure = tls.createServer({
        SNICallback: (name, report) => {
          asked = name;
          report(new Error('not here'));
        },
      });
      secure.on('tlsClientError', () => undefined);
      await once(secure.listen(0, '127.0.0.1'), 'listening');
      const { port: its } = secure.address() as AddressInfo;
      const allow = allowedDestinations.parse(`127.0.0.1:${its}`);
      const named = new OutboundClient({ allow, resolve: () => Promise.resolve(['127.0.0.1']) });
      await expect(named.get(`https://${host}:${its}/`, CALL)).rejects.toThrow(
        /^The TLS connection to the host failed$/,
      );
      expect(asked).toBe('name.test');
      await new Promise((resolve) => secure.close(resolve));
    },
  );

  test('rejects a connection that ends at another address', { tags: 'attack' }, async () => {
    answer = html('elsewhere');
    const before = requests;
    const astray = new OutboundClient({
      allow: allowedDestinations.parse('127.0.0.0/8'),
      connect: (to) => net.connect({ ...to, host: '127.0.0.1' }),
    });
    expect(await codeOf(astray.get(`http://127.0.0.2:${port}/`, CALL))).toBe('URL_NOT_ALLOWED');
    expect(requests).toBe(before);
  });

  test(
    'closes a connection at the deadline when the host stays silent',
    { tags: 'attack' },
    async () => {
      let resolveMet = (): void => undefined;
      const met = new Promise<void>((resolve) => (resolveMet = resolve));
      let ended: Promise<unknown> | undefined;
      const silent = net.createServer((socket) => {
        ended = once(socket, 'close');
        // The TLS greeting has arrived and stays unanswered.
        socket.on('error', () => undefined).once('data', resolveMet);
      });
      await once(silent.listen(0, '127.0.0.1'), 'listening');
      const { port: its } = silent.address() as AddressInfo;
      const allow = allowedDestinations.parse(`127.0.0.1:${its}`);
      const given = new AbortController();
      const call = { ...CALL, signal: given.signal };
      const reading = new OutboundClient({ allow }).get(`https://127.0.0.1:${its}/`, call);
      void met.then(() => given.abort(new Error('time is up')));
      await expect(reading).rejects.toThrow('time is up');
      await ended;
      await new Promise((resolve) => silent.close(resolve));
    },
  );

  test(
    'closes the connection of a redirect whose body never ends',
    { tags: 'attack' },
    async () => {
      let resolveEnd = (_how: string): void => undefined;
      const ended = new Promise<string>((resolve) => (resolveEnd = resolve));
      answer = (request, response) => {
        if (request.url !== '/') return html('found')(request, response);
        response.on('close', () => resolveEnd('ended'));
        return response.writeHead(302, { location: '/there' }).write('a');
      };
      expect((await outbound().get(here, CALL)).body.toString()).toBe('found');
      expect(await ended).toBe('ended');
    },
  );

  test('closes the connection of a slow page at the deadline', { tags: 'attack' }, async () => {
    let resolveEnd = (_how: string): void => undefined;
    const ended = new Promise<string>((resolve) => (resolveEnd = resolve));
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).write('<p>');
      const drip = setInterval(() => response.write('a'), 10);
      response.on('close', () => {
        clearInterval(drip);
        resolveEnd('ended');
      });
    };
    const given = new AbortController();
    const reading = outbound().get(here, { ...CALL, signal: given.signal });
    setTimeout(() => given.abort(new Error('time is up')), 50);
    await expect(reading).rejects.toThrow('time is up');
    expect(await ended).toBe('ended');
  });

  test('reports an unreachable host without its address', async () => {
    const free = net.createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port: closed } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const allow = allowedDestinations.parse(`127.0.0.1:${closed}`);
    const reading = new OutboundClient({ allow }).get(`http://127.0.0.1:${closed}/`, CALL);
    await expect(reading).rejects.toThrow(/^The host of the URL does not answer$/);
  });

  test('rejects a name without addresses', async () => {
    const nowhere = outbound(() => Promise.resolve([]));
    expect(await codeOf(nowhere.get('http://name.test/', CALL))).toBe('UNREACHABLE');
  });
});

/** Adds an extra field, a name, a comment and a checksum to the head of gzip. */
function withGzipHead(bytes: Buffer): Buffer {
  const head = Buffer.from(bytes.subarray(0, 10));
  head[3] = 2 | 4 | 8 | 16;
  const fields = Buffer.from('\x03\0abcname\0a comment\0cs', 'latin1');
  return Buffer.concat([head, fields, bytes.subarray(10)]);
}

/**
 * Builds a zstd frame that holds a text uncompressed.
 *
 * @param windowLog memory that the frame requires, as a power of two.
 */
function zstdFrame(text: string, windowLog: number): Buffer {
  const head = [0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3];
  const block = Buffer.alloc(3);
  block.writeUIntLE((Buffer.byteLength(text) << 3) | 1, 0, 3);
  return Buffer.concat([Buffer.from(head), block, Buffer.from(text)]);
}

function redirect(location: string): RequestListener {
  return (_request, response) => response.writeHead(302, { location }).end();
}

function upgrade(request: http.IncomingMessage): void {
  request.socket.end(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
  );
}

function announced(times: number): RequestListener {
  return (request, response) => {
    request.socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(times));
    // A delayed answer keeps the early responses separate from the final response.
    if (times <= 10) setTimeout(() => html('found')(request, response), 50);
  };
}
