import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http, { type RequestListener } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import tls from 'node:tls';
import zlib from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { decompressed } from '../../../src/platform/outbound/decompress.js';
import { OutboundClient, type OutboundCall } from '../../../src/platform/outbound/outbound.js';
import { allowedDestinations } from '../../../src/platform/outbound/allowed-places.js';
import type { Connect } from '../../../src/platform/outbound/connect.js';
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

/** Where somebody was about to connect to who may not. Nothing leaves: a check that fails is seen here. */
const reached: unknown[] = [];
const nowhere: Connect = ({ host, port: its }) => {
  reached.push(`${host} ${its}`);
  return new net.Socket().destroy(new Error('nowhere'));
};
const onlyHere: Connect = (to) =>
  to.host === '127.0.0.1' && to.port === port ? net.connect(to) : nowhere(to);

/** May reach the test's own server, and that alone. */
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

const html =
  (body: string | Buffer, headers: http.OutgoingHttpHeaders = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body);

describe('What is not public is refused before anything is sent', { tags: 'attack' }, () => {
  const refusals = ['URL_NOT_ALLOWED', 'INVALID_URL'];

  afterEach(() => expect(reached.splice(0)).toEqual([]));

  test('each of 120 spellings and addresses, none of them twice', () => {
    expect(new Set([...FORGED_HOSTS, ...FORGED_URLS]).size).toBeGreaterThanOrEqual(120);
  });

  test.each(FORGED_HOSTS)('http://%s', async (host) => {
    const before = connections;
    for (const scheme of ['http', 'https']) {
      // Neither on its usual port nor, where that is not the one address with its port, on ours.
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
    'a name that is %s',
    async (_text, addresses) => {
      const lying = refusing(() => Promise.resolve(addresses));
      expect(await codeOf(lying.get(`http://name.test:${port}/`, CALL))).toBe('URL_NOT_ALLOWED');
    },
  );

  const elsewhere = FORGED_URLS.filter((url) => !isWithin(url));
  test.each([...FORGED_HOSTS.map((host) => `http://${host}:1234/`), ...elsewhere])(
    'a redirect to %j',
    async (location) => {
      // A header cannot hold the ends of lines, which no browser reads either.
      const sent = Buffer.from(location.replace(/[\n\t]/g, '')).toString('latin1');
      answer = redirect(sent);
      expect(refusals).toContain(await codeOf(outbound().get(here, CALL)));
    },
  );

  test('a name that changes between two look-ups is looked up once for each connection', async () => {
    const told: string[] = [];
    const changing = outbound(() => {
      told.push('asked');
      return Promise.resolve(told.length === 1 ? ['127.0.0.1'] : ['127.0.0.1', '10.0.0.1']);
    });
    answer = (_request, response) => response.writeHead(302, { location: '/again' }).end();
    const code = await codeOf(changing.get(`http://name.test:${port}/`, CALL));
    expect([code, told.length]).toEqual(['URL_NOT_ALLOWED', 2]);
  });

  test.each(['http_proxy', 'HTTP_PROXY', 'ALL_PROXY'])(
    'proxies of the environment are not asked: %s',
    async (name) => {
      answer = html('direct');
      vi.stubEnv(name, 'http://127.0.0.1:9');
      vi.stubEnv('NODE_USE_ENV_PROXY', '1');
      onTestFinished(() => void vi.unstubAllEnvs());
      expect((await outbound().get(here, CALL)).body.toString()).toBe('direct');
    },
  );

  test('what may be reached by its address is refused for all else as any other', async () => {
    const allow = allowedDestinations.parse('127.0.0.0/8');
    const allowing = new OutboundClient({ allow, connect: nowhere });
    for (const url of ['http://127.0.0.1:22/', 'http://ada@127.0.0.1/', 'ftp://127.0.0.1/']) {
      expect(await codeOf(allowing.get(url, CALL))).toBe('URL_NOT_ALLOWED');
    }
  });
});

/** Whether a redirect to it stays on its server, or goes to another's front page. */
const isWithin = (url: string) => {
  const base = 'http://public.test/';
  return (
    URL.canParse(url, base) &&
    ['public.test', '8.8.8.8'].includes(new URL(url, base).host) &&
    new URL(url, base).username === '' &&
    new URL(url, base).protocol === 'http:'
  );
};

describe('A page', () => {
  test('is read by name, with its own host name told to its server', async () => {
    answer = (request, response) => html(request.headers.host ?? '')(request, response);
    const named = outbound(() => Promise.resolve(['127.0.0.1']));
    const { body, url } = await named.get(`http://name.test:${port}/a#b`, CALL);
    expect([body.toString(), url]).toEqual([`name.test:${port}`, `http://name.test:${port}/a`]);
  });

  test('is read from the second address of its name when the first does not answer', async () => {
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

  test('is found at the end of redirects, also of one in UTF-8', async () => {
    answer = (request, response) => {
      if (request.url === '/') {
        const location = Buffer.from('/schöne/../ü').toString('latin1');
        return response.writeHead(301, { location }).end();
      }
      return html('found')(request, response);
    };
    expect((await outbound().get(here, CALL)).url).toBe(`${here}/%C3%BC`);
  });

  test('is found at the end of a redirect in latin-1', async () => {
    answer = (request, response) =>
      request.url === '/'
        ? response.writeHead(302, { location: '/\u00fc' }).end()
        : html('found')(request, response);
    expect((await outbound().get(here, CALL)).url).toBe(`${here}/%C3%BC`);
  });

  test.each([301, 302, 303, 307, 308])('is found where status %i leads', async (status) => {
    answer = (request, response) =>
      request.url === '/'
        ? response.writeHead(status, { location: '/there' }).end()
        : html('found')(request, response);
    expect((await outbound().get(here, CALL)).url).toBe(`${here}/there`);
  });

  test('is read where it is, whatever place it names beside', async () => {
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
    ['gzip', zlib.gzipSync(text).subarray(0, -4)],
  ])('comes as %s', async (encoding, bytes) => {
    answer = html(bytes, { 'content-encoding': encoding });
    expect((await outbound().get(here, CALL)).body.toString()).toBe(text);
  });

  // Node has it from 22.15 on.
  test('comes as zstd where Node unpacks that, and else is told as what is not known', async () => {
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

  test('of many pieces is unpacked without what Node takes for a leak', async () => {
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

test('a page that announces itself ten times is read', async () => {
  answer = announced(10);
  expect((await outbound().get(here, CALL)).body.toString()).toBe('found');
});

describe('A page is not read', () => {
  const cases: readonly (readonly [string, string, RequestListener])[] = [
    ['that answers 404', 'UPSTREAM_STATUS', (_request, response) => response.writeHead(404).end()],
    ['that is a picture', 'NOT_HTML', html('', { 'content-type': 'image/png' })],
    ['that does not say what it is', 'NOT_HTML', (_request, response) => response.end('<p>')],
    [
      'that redirects nowhere',
      'UPSTREAM_STATUS',
      (_request, response) => response.writeHead(304).end(),
    ],
    ['that redirects for ever', 'TOO_MANY_REDIRECTS', redirect('/')],
    ['compressed as nobody does', 'BAD_ENCODING', html('', { 'content-encoding': 'rot13' })],
    ['compressed three times', 'BAD_ENCODING', html('', { 'content-encoding': 'gzip,gzip,gzip' })],
    ['not compressed as it says', 'BAD_ENCODING', html('<p>', { 'content-encoding': 'gzip' })],
    [
      'whose zstd asks for 128 MB',
      'BAD_ENCODING',
      html(zstdFrame('<p>', 27), { 'content-encoding': 'zstd' }),
    ],
    ['over a megabyte', 'TOO_LARGE', html(Buffer.alloc(1024 ** 2 + 1, 'a'))],
    ['that breaks off', 'UNREACHABLE', html('<p>', { 'content-length': 100 })],
    ['that asks for another protocol', 'UNREACHABLE', upgrade],
    ['that announces itself eleven times', 'UNREACHABLE', announced(11)],
    ['whose head is endless', 'UNREACHABLE', html('', { 'x-long': 'a'.repeat(70_000) })],
  ];
  test.each(cases)('%s', { tags: 'attack', timeout: 60_000 }, async (_what, code, listener) => {
    answer = listener;
    expect(await codeOf(outbound().get(here, CALL))).toBe(code);
  });

  test('that unpacks to more than may be, however small it came', { tags: 'attack' }, async () => {
    const bomb = zlib.gzipSync(zlib.gzipSync(Buffer.alloc(50 * 1024 ** 2)));
    expect(bomb.length).toBeLessThan(1_000);
    answer = html(bomb, { 'content-encoding': 'gzip, gzip' });
    expect(await codeOf(outbound().get(here, CALL))).toBe('TOO_LARGE');
  });

  test('that never ends when it is unpacked', { tags: 'attack' }, async () => {
    answer = (_request, response) => {
      const packed = zlib.createGzip();
      const zeros = setInterval(() => packed.write(Buffer.alloc(CALL.maxBytes / 4)), 10);
      response.on('close', () => clearInterval(zeros));
      response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' });
      packed.on('data', (piece) => response.write(piece));
    };
    expect(await codeOf(outbound().get(here, CALL))).toBe('TOO_LARGE');
  });

  test('that is small only when it is unpacked', { tags: 'attack' }, async () => {
    const nothing = zlib.gzipSync('');
    const many = Buffer.concat(Array<Buffer>(60_000).fill(nothing));
    expect(many.length).toBeGreaterThan(CALL.maxBytes);
    answer = html(many, { 'content-encoding': 'gzip' });
    expect(await codeOf(outbound().get(here, CALL))).toBe('TOO_LARGE');
  });

  test('that is more than five redirects away, and is when it is five', async () => {
    answer = (request, response) => {
      const left = Number((request.url ?? '/').slice(1));
      if (left === 0) return html('found')(request, response);
      return response.writeHead(302, { location: `/${left - 1}` }).end();
    };
    expect((await outbound().get(`${here}/5`, CALL)).body.toString()).toBe('found');
    expect(await codeOf(outbound().get(`${here}/6`, CALL))).toBe('TOO_MANY_REDIRECTS');
  });

  test('of more than 8,192 characters in its address', async () => {
    answer = html('found');
    const start = `${here}/`;
    const long = start.padEnd(8_192, 'a');
    expect((await outbound().get(long, CALL)).body.toString()).toBe('found');
    expect(await codeOf(outbound().get(`${long}a`, CALL))).toBe('INVALID_URL');
  });

  test('whose name has more than four addresses that do not answer', async () => {
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
    'of %s when it is another, and is told who that is',
    async (host) => {
      let asked = '';
      const secure = tls.createServer({
        SNICallback: (name, tell) => {
          asked = name;
          tell(new Error('not here'));
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

  test('of an address that a connection does not end at', { tags: 'attack' }, async () => {
    answer = html('elsewhere');
    const before = requests;
    const astray = new OutboundClient({
      allow: allowedDestinations.parse('127.0.0.0/8'),
      connect: (to) => net.connect({ ...to, host: '127.0.0.1' }),
    });
    expect(await codeOf(astray.get(`http://127.0.0.2:${port}/`, CALL))).toBe('URL_NOT_ALLOWED');
    expect(requests).toBe(before);
  });

  test('of a host that never says a word, once its time is up', { tags: 'attack' }, async () => {
    let tellMet = (): void => undefined;
    const met = new Promise<void>((resolve) => (tellMet = resolve));
    let ended: Promise<unknown> | undefined;
    const silent = net.createServer((socket) => {
      ended = once(socket, 'close');
      // It has been greeted, and waits.
      socket.on('error', () => undefined).once('data', tellMet);
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
  });

  test('that redirects and does not end: its connection does', { tags: 'attack' }, async () => {
    let tellEnd = (_how: string): void => undefined;
    const ended = new Promise<string>((resolve) => (tellEnd = resolve));
    answer = (request, response) => {
      if (request.url !== '/') return html('found')(request, response);
      response.on('close', () => tellEnd('ended'));
      return response.writeHead(302, { location: '/there' }).write('a');
    };
    expect((await outbound().get(here, CALL)).body.toString()).toBe('found');
    expect(await ended).toBe('ended');
  });

  test('that drips, once its time is up: its connection ends', { tags: 'attack' }, async () => {
    let tellEnd = (_how: string): void => undefined;
    const ended = new Promise<string>((resolve) => (tellEnd = resolve));
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).write('<p>');
      const drip = setInterval(() => response.write('a'), 10);
      response.on('close', () => {
        clearInterval(drip);
        tellEnd('ended');
      });
    };
    const given = new AbortController();
    const reading = outbound().get(here, { ...CALL, signal: given.signal });
    setTimeout(() => given.abort(new Error('time is up')), 50);
    await expect(reading).rejects.toThrow('time is up');
    expect(await ended).toBe('ended');
  });

  test('that is not there, in words that name no address', async () => {
    const free = net.createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port: closed } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const allow = allowedDestinations.parse(`127.0.0.1:${closed}`);
    const reading = new OutboundClient({ allow }).get(`http://127.0.0.1:${closed}/`, CALL);
    await expect(reading).rejects.toThrow(/^The host of the URL does not answer$/);
  });

  test('whose name has no address', async () => {
    const nowhere = outbound(() => Promise.resolve([]));
    expect(await codeOf(nowhere.get('http://name.test/', CALL))).toBe('UNREACHABLE');
  });
});

/** A frame of zstd that holds a text as it is. @param windowLog how much memory it asks for, as a power of two. */
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
    // Its answer comes by itself, so that what is said before is heard before.
    if (times <= 10) setTimeout(() => html('found')(request, response), 50);
  };
}
