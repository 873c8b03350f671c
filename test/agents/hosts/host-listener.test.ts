import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type RequestListener } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import {
  ContainerMissingError,
  DockerUnavailableError,
  InvalidCursorError,
} from '../../../src/docker/containers/container-errors.js';
import { BadGatewayError, ConflictError } from '../../../src/lib/errors.js';
import type { HostAccess } from '../../../src/agents/hosts/host-access.js';
import { errorOf } from '../../../src/agents/hosts/host-wire.js';
import { HostListener, type HostListenerParts } from '../../../src/agents/hosts/host-listener.js';
import {
  hostToken,
  isForBody,
  readHostToken,
  UsedTokens,
} from '../../../src/agents/hosts/host-token.js';
import { HostUnreachableError, RemoteHost } from '../../../src/agents/hosts/remote-host.js';
import { LOOPBACK_NAMES } from '../../../src/platform/http/own-hosts.js';
import { ringOf } from '../../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../../src/platform/secrets/secret-box.js';
import { until } from '../../support/until.js';
import { keptLog } from '../../support/platform-environment.js';

const secrets = new SecretBox(ringOf(randomBytes(32)));
const { log, lines } = keptLog();
const listeners: HostListener[] = [];
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close()));
});

/** Returns a host that implements only the given calls. */
const acting = (parts: Partial<HostAccess>): HostAccess => {
  const unused = () => {
    throw new TypeError('not used by this test');
  };
  return {
    ask: unused,
    logs: unused,
    stats: unused,
    instances: unused,
    browse: unused,
    connect: unused,
    failures: unused,
    ...parts,
  };
};

async function serve(parts: Partial<HostAccess>, given: Partial<HostListenerParts> = {}) {
  const host = acting(parts);
  const listener = new HostListener({
    id: 'far',
    host,
    secrets,
    names: new Set(LOOPBACK_NAMES),
    agentsNetwork: '10.231.0.0/16',
    log,
    ...given,
  });
  listeners.push(listener);
  return `http://127.0.0.1:${await listener.listen('127.0.0.1', 0)}`;
}

const remote = (url: string, id = 'far', box = secrets) =>
  new RemoteHost({ id, url, secrets: box, log });
/** Returns a remote host with a connection timeout in milliseconds. */
const hastyRemote = (url: string, admissionMs: number) =>
  new RemoteHost({ id: 'far', url, secrets, log, admissionMs });

const agent = { agentId: 'a', userId: 'u', host: 'far' };
const question = { message: 'ünïcödé 🚀', conversation: 'c' };
const never = new AbortController().signal;

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test('notes the duration of each call by the declared path', async () => {
  const noted: unknown[] = [];
  const url = await serve(
    { stats: () => Promise.resolve(null) },
    { noteRequest: (...request) => noted.push(request) },
  );
  await remote(url).stats('a');
  await fetch(`${url}/made/up`);
  await expect
    .poll(() => noted)
    .toEqual([
      ['POST', '/v1/calls', 200, expect.any(Number)],
      ['GET', undefined, 404, expect.any(Number)],
    ]);
});

describe('host token', { tags: 'attack' }, () => {
  const read = (token: string, { now = Date.now(), host = 'far', box = secrets } = {}) =>
    readHostToken(box, host, token, now);

  test('accepts a host token for one host and 60 s, and only with the same key', () => {
    const now = 1_000_000;
    const token = hostToken(secrets, 'far', '{}', now);
    expect(read(token, { now })).toMatchObject({ until: 1_060_000 });
    expect(read(token, { now: 1_059_999 })).toBeDefined();
    expect(read(token, { now: 1_060_000 })).toBeUndefined();
    expect(read(token, { now, host: 'near' })).toBeUndefined();
    expect(read(token, { now, box: new SecretBox(ringOf(randomBytes(32))) })).toBeUndefined();
    // A token from the future is invalid.
    expect(read(token, { now: 900_000 })).toBeUndefined();
  });

  test('rejects a host token of which any part was changed', () => {
    const token = hostToken(secrets, 'far', '{}');
    const [until, nonce = '', digest = ''] = token.split('.');
    const flipped = (hex: string) => hex.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    for (const forged of [
      token.replace(/^\d+/, String(Number(until) + 1)),
      token.replace(nonce, flipped(nonce)),
      token.replace(digest, flipped(digest)),
      flipped(token),
      token.slice(0, -1),
      '',
      '...',
      `${token}0`,
    ]) {
      expect(read(forged)).toBeUndefined();
    }
    expect(read(token)).toBeDefined();
  });

  test('a host token is valid for one body', () => {
    const claim = read(hostToken(secrets, 'far', '{"call":"stats"}'));
    expect(claim && isForBody(claim, '{"call":"stats"}')).toBe(true);
    expect(claim && isForBody(claim, '{"call":"logs"}')).toBe(false);
  });

  test('remembers used tokens while they would be valid, in bounded memory', () => {
    const used = new UsedTokens({ now: 0, max: 2 });
    const [first, second] = [1, 2].map((until) => ({
      nonce: String(until),
      until: 60_000 + until,
      digest: '',
    }));
    if (!first || !second) throw new TypeError('two tokens were made');
    expect(used.use(first)).toBe(true);
    expect(used.use(first)).toBe(false);
    expect(used.isFull(60_000)).toBe(false);
    expect(used.use(second)).toBe(true);
    expect(used.isFull(60_000)).toBe(true);
    expect(used.isFull(60_001)).toBe(false);
  });

  test('refuses tokens that were made before the start, since they may have been used', () => {
    const used = new UsedTokens({ now: 1_000 });
    expect(used.use({ nonce: 'a', digest: '', until: 60_999 })).toBe(false);
    expect(used.use({ nonce: 'a', digest: '', until: 61_000 })).toBe(true);
  });
});

describe('remote host', () => {
  test("streams the agent's answer in chunks as they are produced", async () => {
    const asked: unknown[] = [];
    const url = await serve({
      async *ask(by, { conversation, message }) {
        asked.push({ by, conversation, message });
        yield 'one ';
        await delay(5);
        yield 'zwei 🚀\n';
      },
    });
    expect(await all(remote(url).ask(agent, question, never))).toEqual(['one ', 'zwei 🚀\n']);
    expect(asked).toEqual([{ by: agent, ...question }]);
  });

  test.each([
    [
      new ConflictError('The agent is not running', 'AGENT_NOT_RUNNING'),
      ConflictError,
      'The agent is not running',
    ],
    [new BadGatewayError('broke'), BadGatewayError, 'broke'],
    [new ContainerMissingError('a'), ContainerMissingError, 'Agent a has no container'],
    [new InvalidCursorError(), InvalidCursorError, 'cursor'],
    [new DockerUnavailableError('secret path'), Error, 'Docker is not available'],
    [new TypeError('secret'), BadGatewayError, "The agent's host failed to answer"],
  ])('passes on the error of the host: %s', async (thrown, kind, message) => {
    const url = await serve({
      async *logs() {
        await delay(1);
        yield { timestamp: 't', stream: 'stdout', line: 'first', cursor: 'c' };
        throw thrown;
      },
    });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { line } of remote(url).logs('a', { tail: 3 })) seen.push(line);
    })();
    await expect(reading).rejects.toThrow(kind);
    await expect(reading).rejects.toThrow(message);
    expect(seen).toEqual(['first']);
  });

  test('passes on the code of a conflict, and gives a conflict of an older release a code', async () => {
    const thrown = new ConflictError('no memory', 'MEMORY_MISSING');
    const url = await serve({ stats: () => Promise.reject(thrown) });
    await expect(remote(url).stats('a')).rejects.toMatchObject({ code: 'MEMORY_MISSING' });
    expect(errorOf({ kind: 'conflict', message: 'no' }, 'a')).toMatchObject({
      code: 'OPERATION_IN_FLIGHT',
    });
  });

  test('rejects callers with another key or for another host', async () => {
    const url = await serve({ stats: () => Promise.resolve(null) });
    expect(await remote(url).stats('a')).toBeNull();
    const other = new SecretBox(ringOf(randomBytes(32)));
    await expect(remote(url, 'far', other).stats('a')).rejects.toThrow(HostUnreachableError);
    await expect(remote(url, 'near').stats('a')).rejects.toThrow(HostUnreachableError);
    expect(lines.join()).toContain('its worker refused the token');
    expect((await fetch(`${url}/v1/calls`, { method: 'POST', body: '{}' })).status).toBe(401);
  });

  test('refuses a token for another call, and a repeated call', { tags: 'attack' }, async () => {
    let calls = 0;
    const url = await serve({ stats: () => Promise.resolve((calls++, null)) });
    const call = '{"call":"stats","agentId":"a"}';
    const authorization = `Bearer ${hostToken(secrets, 'far', call)}`;
    const statusOf = async (body: string) => {
      const sent = await fetch(`${url}/v1/calls`, {
        method: 'POST',
        headers: { authorization },
        body,
      });
      await sent.text();
      return sent.status;
    };
    expect(await statusOf('{"call":"stats","agentId":"b"}')).toBe(401);
    expect(calls).toBe(0);
    // The refused call has not used the token up.
    expect(await statusOf(call)).toBe(200);
    expect(await statusOf(call)).toBe(401);
    expect(calls).toBe(1);
  });

  test('answers a malformed call with 400', async () => {
    const url = await serve({});
    const send = (body: string) =>
      fetch(`${url}/v1/calls`, {
        method: 'POST',
        headers: { authorization: `Bearer ${hostToken(secrets, 'far', body)}` },
        body,
      });
    for (const body of ['', '{', '{"call":"containers"}', '{"call":"stats","agentId":5}']) {
      expect((await send(body)).status).toBe(400);
    }
  });

  test('rejects other paths, methods, host names and oversized bodies', async () => {
    const url = await serve({ stats: () => Promise.resolve(null) });
    const statusOf = async (path: string, { name = 'localhost', method = 'POST', filled = 0 }) => {
      const body = `{"call":"stats",${' '.repeat(filled)}"agentId":"a"}`;
      const headers = { host: name, authorization: `Bearer ${hostToken(secrets, 'far', body)}` };
      const asking = request(`${url}${path}`, { method, headers });
      asking.end(body);
      const status = once(asking, 'response').then(
        ([response]: IncomingMessage[]) => response?.statusCode,
      );
      return status.catch(() => 'broken off');
    };
    expect(await statusOf('/v1/calls', {})).toBe(200);
    expect(await statusOf('/v1/calls', { name: 'rebound.example' })).toBe(421);
    expect(await statusOf('/v1/calls', { method: 'PUT' })).toBe(404);
    expect(await statusOf('/v1/other', {})).toBe(404);
    expect(await statusOf('/v1/calls', { filled: 1_000_000 })).toBe(200);
    expect(await statusOf('/v1/calls', { filled: 2_000_000 })).toBe('broken off');
  });

  test('answers 503 for a host that does not listen', async () => {
    const nowhere = remote('http://127.0.0.1:1');
    await expect(nowhere.stats('a')).rejects.toMatchObject({ status: 503 });
  });

  test('answers 503 when a host accepts the connection but does not respond in time', async () => {
    const silent = createServer(() => undefined);
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo; // A TCP address is never a string.
    const asked = hastyRemote(`http://127.0.0.1:${port}`, 100).stats('a');
    await expect(asked).rejects.toBeInstanceOf(HostUnreachableError);
    silent.closeAllConnections();
    silent.close();
  });

  test.each([
    ['leads elsewhere', 307, { location: '/other' }],
    ['answers with a page', 200, { 'content-type': 'text/html' }],
    ['compresses', 200, { 'content-type': 'application/x-ndjson', 'content-encoding': 'br' }],
  ])('reports a host that %s as unreachable', { tags: 'attack' }, async (_case, status, head) => {
    const visits: (string | undefined)[] = [];
    const server = createServer(({ url }, response) => {
      visits.push(url);
      response.writeHead(status, head).end('{"item":null}\n{"end":true}\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      // A TCP address is never a string.
      const { port } = server.address() as AddressInfo;
      const asked = remote(`http://127.0.0.1:${port}`).stats('a');
      await expect(asked).rejects.toThrow(HostUnreachableError);
      expect(visits).toEqual(['/v1/calls']);
    } finally {
      server.close();
    }
  });

  /** Runs a call against a server that does not follow the protocol. */
  async function saying(says: RequestListener, asks: (url: string) => Promise<unknown>) {
    const server = createServer(says);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      // A TCP address is never a string.
      return await asks(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  }
  const isAnswer = { 'content-type': 'application/x-ndjson' };

  test("answers 502 when a host's answer is truncated", async () => {
    const asked = saying(
      (_, response) => response.writeHead(200, isAnswer).end('{"item":"half of it"}\n'),
      (url) => all(remote(url).ask(agent, question, never)),
    );
    await expect(asked).rejects.toMatchObject({ status: 502 });
  });

  test.each(['{"item":5}', '{"item":"cut'])(
    "answers 502 when a host's answer holds the malformed line %s",
    async (line) => {
      const asked = saying(
        (_, response) => response.writeHead(200, isAnswer).end(`${line}\n{"end":true}\n`),
        (url) => all(remote(url).ask(agent, question, never)),
      );
      await expect(asked).rejects.toMatchObject({
        status: 502,
        message: expect.stringContaining('an invalid answer'),
      });
    },
  );

  test('disconnects from a host whose line never ends', { tags: 'attack' }, async () => {
    let isLeft = false;
    const asked = saying(
      (_, response) => {
        response.writeHead(200, isAnswer).on('close', () => (isLeft = true));
        const piece = `{"item":"${'x'.repeat(1024 * 1024)}`;
        const goOn = () => isLeft || response.write(piece, () => setImmediate(goOn));
        goOn();
      },
      async (url) => {
        try {
          await all(remote(url).ask(agent, question, never));
        } finally {
          await until(() => isLeft);
        }
      },
    );
    await expect(asked).rejects.toMatchObject({
      status: 502,
      message: expect.stringContaining('a line that is too long'),
    });
  });

  test('waits longer for the first chunk than for the connection', async () => {
    const url = await serve({
      async *ask() {
        await delay(3000);
        yield 'late';
      },
    });
    const host = hastyRemote(url, 2500);
    expect(await all(host.ask(agent, question, never))).toEqual(['late']);
  });

  test('keeps a silent call alive with pulses', async () => {
    const url = await serve(
      {
        async *ask() {
          await delay(150);
          yield 'late';
        },
      },
      { pulseMs: 20 },
    );
    expect(await all(remote(url).ask(agent, question, never))).toEqual(['late']);
  });

  test('stops the source when its reader leaves, and pauses it for a slow reader', async () => {
    let made = 0;
    let ended = false;
    const url = await serve({
      async *logs() {
        try {
          for (;;) {
            made++;
            yield { timestamp: 't', stream: 'stdout', line: 'x'.repeat(10_000), cursor: 'c' };
            await delay(0);
          }
        } finally {
          ended = true;
        }
      },
    });
    const reading = remote(url).logs('a', { follow: true });
    await reading.next();
    let before = -1;
    await until(async () => {
      const [last, now] = [before, made];
      before = now;
      await delay(300);
      return last === now;
    });
    // Lines of 10 kB: only sockets and streams buffer them.
    expect(made).toBeLessThan(2_000);
    await reading.return(undefined);
    await until(() => Promise.resolve(ended));
  });

  test('disconnects a caller that does not read its answer', { tags: 'attack' }, async () => {
    let ended = false;
    const url = await serve(
      {
        async *logs() {
          try {
            for (;;) {
              yield { timestamp: 't', stream: 'stdout', line: 'x'.repeat(100_000), cursor: 'c' };
              await delay(0);
            }
          } finally {
            ended = true;
          }
        },
      },
      { stalledMs: 300 },
    );
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => undefined).pause();
    const body = '{"call":"logs","agentId":"a"}';
    socket.write(
      `POST /v1/calls HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n` +
        `authorization: Bearer ${hostToken(secrets, 'far', body)}\r\n\r\n${body}`,
    );
    await until(() => ended);
    socket.destroy();
  });

  test("aborts the agent's answer when its reader leaves", async () => {
    let listens: AbortSignal | undefined;
    const url = await serve({
      async *ask(_agent, _question, signal) {
        listens = signal;
        yield 'begun';
        await new Promise<never>(() => undefined);
      },
    });
    const reading = remote(url).ask(agent, question, never);
    await reading.next();
    await reading.return(undefined);
    await until(() => listens?.aborted === true);
  });

  test('limits the concurrent calls of an owner and stops counting completed calls', async () => {
    const url = await serve(
      {
        async *ask() {
          yield 'one';
          await delay(0);
        },
        stats: () => new Promise(() => undefined),
      },
      { maxCalls: 16 },
    );
    for (let asked = 0; asked < 20; asked += 1) {
      expect(await all(remote(url).ask(agent, question, never))).toEqual(['one']);
    }
    const leaving = new AbortController();
    const body = '{"call":"stats","agentId":"a"}';
    const held = Array.from({ length: 5 }, () =>
      fetch(`${url}/v1/calls`, {
        method: 'POST',
        headers: { authorization: `Bearer ${hostToken(secrets, 'far', body)}` },
        body,
        signal: leaving.signal,
      }),
    );
    const statuses = (await Promise.all(held)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 503]);
    leaving.abort();
  });

  test('keeps room for other owners when some reach their limit', { tags: 'attack' }, async () => {
    const url = await serve(
      {
        async *ask() {
          yield 'one';
          await new Promise<never>(() => undefined);
        },
      },
      { maxCalls: 40 },
    );
    const leaving = new AbortController();
    const ask = (userId: string) =>
      remote(url)
        .ask({ ...agent, userId }, question, leaving.signal)
        .next()
        .then(
          ({ value }) => value,
          () => 'refused',
        );
    for (let account = 0; account < 6; account++) {
      await Promise.all(Array.from({ length: 10 }, () => ask(`greedy ${account}`)));
    }
    expect(await ask('greedy 0')).toBe('refused');
    expect(await ask('other')).toBe('one');
    leaving.abort();
  });

  test("drops connections from the agents' network", async () => {
    const url = await serve(
      { stats: () => Promise.resolve(null) },
      { agentsNetwork: '127.0.0.0/8' },
    );
    await expect(remote(url).stats('a')).rejects.toThrow(HostUnreachableError);
    // Repeats the check on a listener for all addresses, where IPv4 peers have IPv6-mapped addresses.
    const mapped = new HostListener({
      id: 'far',
      host: acting({ stats: () => Promise.resolve(null) }),
      secrets,
      log,
      names: new Set(LOOPBACK_NAMES),
      agentsNetwork: '127.0.0.0/8',
    });
    listeners.push(mapped);
    const port = await mapped.listen('::', 0);
    await expect(remote(`http://127.0.0.1:${port}`).stats('a')).rejects.toThrow(
      HostUnreachableError,
    );
    expect(await remote(`http://[::1]:${port}`).stats('a')).toBeNull();
  });

  test("interrupts calls in flight with 502 when the host's listener closes", async () => {
    const url = await serve({
      async *ask(_agent, _question, signal) {
        yield 'begun';
        await delay(60_000, undefined, { signal });
      },
    });
    const answer = remote(url).ask(agent, question, never);
    await answer.next();
    await listeners.splice(0)[0]?.close();
    await expect(answer.next()).rejects.toMatchObject({ status: 502 });
  });
});
