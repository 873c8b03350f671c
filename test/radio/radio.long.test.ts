// @module-tag attack
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort, isPortFree } from '../../dev/ports.js';
import { run } from '../../dev/processes/run.js';
import { projectRoot } from '../../dev/root.js';
import { obtainFfmpeg, obtainHaproxy } from '../../dev/test-programs.js';
import { observeRadio } from '../../src/radio/observe.js';
import { Icecast, IcecastAwayError } from '../../src/radio/icecast.js';
import type { Person } from '../money/wallets/support.js';
import { queryRows } from '../platform/database/catalog.js';
import { hasBrowser, startBrowser } from '../support/browser.js';
import { newAddress, send } from '../support/http.js';
import { until } from '../support/until.js';
import {
  ADMIN_PASSWORD,
  AUTH_SECRET,
  connectSource,
  feed,
  listen,
  radioSite,
  type IcecastChanges,
  type RadioSite,
  type Stream,
} from './support.js';

let site: RadioSite;
let ada: Person;

beforeAll(async () => {
  site = await radioSite();
  ada = await site.holder();
});
afterAll(() => site?.close());

const live = () => site.web(ada, 'GET', '/api/radio/live');
const isLive = async (id: string) =>
  (await live()).body.streams?.find((each: { id: string }) => each.id === id);

const icecast = () => new Icecast({ url: site.icecastUrl, adminPassword: ADMIN_PASSWORD });
const observe = () =>
  observeRadio({ database: site.database.db, icecast: icecast(), log: site.dependencies.log });

/** Waits until Icecast has counted the bytes of a source again. */
async function untilCounted(mount: string): Promise<void> {
  const read = async () => (await icecast().sources()).find((each) => each.mount === mount)?.bytes;
  const before = await read();
  await until(async () => (await read()) !== before);
}

async function timed<T>(work: () => Promise<T>) {
  const began = performance.now();
  const result = await work();
  return { result, ms: performance.now() - began };
}

/** Expects both answers of an unreachable radio, each within two seconds. */
async function expectAway(stream: Stream): Promise<void> {
  // A reading is kept for a second.
  await until(async () => {
    const { ms, result } = await timed(live);
    expect(ms).toBeLessThan(2_000);
    return result.status === 503;
  });
  const own = await timed(() => site.web(ada, 'GET', `/api/radio/streams?id=${stream.id}`));
  expect(own.result).toMatchObject({
    status: 200,
    body: { stream: { status: 'unknown', listeners: null, bitrate: null } },
  });
  expect(own.ms).toBeLessThan(2_000);
}

const untilBack = () => until(async () => (await live()).status === 200);

test('measures the bitrate, and keeps the maximum number of listeners', async () => {
  const stream = await site.stream(ada);
  const source = await connectSource(site.icecastUrl, stream);
  const stop = feed(source, 16_000);
  const players: http.ClientRequest[] = [];
  try {
    await until(() => isLive(stream.id));
    expect(await isLive(stream.id)).toMatchObject({ bitrate: null });
    const url = `${site.icecastUrl}${stream.mount}`;
    for (const _ of [1, 2]) {
      const player = http.get(url, (answer) => answer.resume());
      player.on('error', () => undefined);
      players.push(player);
    }
    await until(async () => (await isLive(stream.id))?.listeners === 2);
    for (const _ of [1, 2]) {
      await untilCounted(stream.mount);
      await observe();
    }
    const shown = await until(async () => {
      const found = await isLive(stream.id);
      return found?.bitrate === null ? undefined : found;
    });
    expect(shown.bitrate).toBeGreaterThan(90);
    expect(shown.bitrate).toBeLessThan(190);
    source.close();
    await until(async () => (await isLive(stream.id)) === undefined);
    const own = await site.web(ada, 'GET', `/api/radio/streams?id=${stream.id}`);
    expect(own.body.stream).toMatchObject({
      ...{ status: 'offline', peakListeners: 2, listeners: 0, bitrate: null },
    });
  } finally {
    stop();
    source.close();
    for (const player of players) player.destroy();
  }
});

test('the last place of a listener is granted once', async () => {
  const stream = await site.stream(ada);
  const source = await connectSource(site.icecastUrl, stream);
  const stop = feed(source);
  const players: http.ClientRequest[] = [];
  // Icecast has five places for connections that it has not accepted yet; others may be reset, and retry.
  const play = (attempts = 5): Promise<number> =>
    new Promise<number>((resolve) => {
      const player = http.get(`${site.icecastUrl}${stream.mount}`, { agent: false }, (answer) => {
        answer.on('error', () => undefined).resume();
        resolve(answer.statusCode ?? 0);
      });
      player.on('error', () => resolve(attempts === 1 ? 0 : play(attempts - 1)));
      players.push(player);
    });
  try {
    await until(() => isLive(stream.id));
    await until(async () => (await play()) === 200);
    const first = await Promise.all(Array.from({ length: 98 }, () => play()));
    expect(new Set(first)).toEqual(new Set([200]));
    const last = await Promise.all(Array.from({ length: 50 }, () => play()));
    expect(last.filter((status) => status === 200)).toHaveLength(1);
    expect(last.filter((status) => status === 401 || status === 404)).toHaveLength(49);
    expect((await isLive(stream.id))?.listeners).toBe(100);
  } finally {
    stop();
    source.close();
    for (const player of players) player.destroy();
  }
});

test('listeners start within two seconds while a chain hangs and twenty sources request admission', async () => {
  const streams: Stream[] = [];
  for (let n = 0; n < 21; n++) streams.push(await site.stream(await site.holder()));
  const [received, ...asking] = streams;
  if (!received) throw new Error('streams were created');
  const source = await connectSource(site.icecastUrl, received);
  const stop = feed(source);
  await until(() => isLive(received.id));
  // Balances that were read before are kept for twenty seconds.
  await queryRows(
    site.database.ownerUrl,
    `UPDATE identities SET subject = '0x' || substr(md5(subject) || md5(id::text), 1, 40)
      WHERE user_id <> '${ada.id}'`,
  );
  site.node.fate = () => 'hung';
  try {
    const questions = asking.map((stream) => connectSource(site.icecastUrl, stream));
    const began = await timed(() => listen(`${site.icecastUrl}${received.mount}`, 1));
    expect(began.result.status).toBe(200);
    expect(began.ms).toBeLessThan(2_000);
    const answered = await timed(() => Promise.all(questions));
    expect(answered.result.every(({ status }) => / 401 /.test(status))).toBe(true);
    expect(answered.ms).toBeLessThan(3_000);
    expect(source.socket.destroyed).toBe(false);
  } finally {
    site.node.fate = () => undefined;
    stop();
    source.close();
  }
  // Everything is refused for five seconds after the timeout.
  const own = await site.stream(ada);
  await until(async () => {
    const again = await connectSource(site.icecastUrl, own);
    again.close();
    return / 200 /.test(again.status);
  });
});

test('a page that is sent as audio runs no script in a browser', async () => {
  if (!hasBrowser) throw new Error('no browser: install the package chromium-headless-shell');
  const stream = await site.stream(ada);
  const source = await connectSource(site.icecastUrl, { ...stream, contentType: 'text/html' });
  expect(source.status).toMatch(/ 200 /);
  const page = '<html><body><p>x</p><script>document.title = "ran"</script>';
  const piece = Buffer.from(page.padEnd(4_000, ' '));
  const timer = setInterval(() => source.send(piece), 50);
  const browser = await startBrowser(site.icecastUrl);
  try {
    const visitor = await browser.newPage();
    const complaints: string[] = [];
    visitor.on('console', (message) => complaints.push(message.text()));
    await visitor
      .goto(`${site.icecastUrl}${stream.mount}`, { waitUntil: 'commit' })
      .catch(() => undefined);
    await until(() => complaints.some((each) => /script/i.test(each)));
    expect(await visitor.title()).toBe('');
    await observe();
    await source.ended;
  } finally {
    clearInterval(timer);
    source.close();
    await browser.close();
  }
});

test('a source leaves the list within fifteen seconds after its last byte', async () => {
  const stream = await site.stream(ada);
  const source = await connectSource(site.icecastUrl, stream);
  const stop = feed(source);
  try {
    await until(() => isLive(stream.id));
    stop();
    await until(async () => (await isLive(stream.id)) === undefined, 15_000);
    await source.ended;
  } finally {
    stop();
    source.close();
  }
});

type Fault = () => Promise<() => Promise<void>>;

/** Starts Icecast again, after it was stopped. */
async function again(changes?: IcecastChanges): Promise<void> {
  site.icecast = await site.startIcecast(changes);
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'is stopped by SIGSTOP'() {
    const { pid } = site.icecast.process;
    process.kill(pid, 'SIGSTOP');
    return Promise.resolve(() => Promise.resolve(void process.kill(pid, 'SIGCONT')));
  },
  async 'is away'() {
    await site.icecast.stop();
    return again;
  },
  async 'is full'() {
    const places = 10;
    await site.icecast.stop();
    await again({ connections: places });
    const { hostname, port } = new URL(site.icecastUrl);
    const sockets = new Set<Socket>();
    let isFull = true;
    // Icecast closes a connection without a request after fifteen seconds: another one takes the place.
    const fill = (): void => {
      while (isFull && sockets.size < places + 2) {
        const socket = connect(Number(port), hostname);
        sockets.add(socket);
        socket.on('error', () => undefined);
        socket.once('close', () => {
          sockets.delete(socket);
          setTimeout(fill, 100);
        });
      }
    };
    fill();
    await until(async () => (await listen(`${site.icecastUrl}/`, 1)).status === 403);
    return async () => {
      isFull = false;
      for (const socket of sockets) socket.destroy();
      await site.icecast.stop();
      await again();
    };
  },
  async 'has another admin password'() {
    await site.icecast.stop();
    await again({ adminPassword: 'another-password-of-the-operator' });
    return async () => {
      await site.icecast.stop();
      await again();
    };
  },
};

test.each(Object.entries(FAULTS))(
  'the radio is a 503 within two seconds while Icecast %s, and recovers',
  async (_, begin) => {
    const [stream, removed] = [await site.stream(ada), await site.stream(ada)];
    const source = await connectSource(site.icecastUrl, removed);
    const stop = feed(source);
    await until(() => isLive(removed.id));
    const end = await begin();
    try {
      await expectAway(stream);
      const path = `/api/radio/streams?id=${removed.id}`;
      const { ms, result } = await timed(() => site.web(ada, 'DELETE', path));
      expect(result.status).toBe(200);
      expect(ms).toBeLessThan(2_000);
      await expect(observe()).rejects.toThrow(IcecastAwayError);
    } finally {
      await end();
    }
    await untilBack();
    await observe();
    await source.ended;
    stop();
    await until(async () => {
      const sources = await icecast().sources();
      return sources.every(({ mount }) => mount !== removed.mount);
    });
    const own = await connectSource(site.icecastUrl, stream);
    expect(own.status).toMatch(/ 200 /);
    own.close();
  },
);

test('a question beyond the limit admits nothing', async () => {
  const stream = await site.stream(ada);
  const from = newAddress();
  const ask = async () => {
    const basic = Buffer.from(`icecast:${AUTH_SECRET}`).toString('base64');
    const { mount, password: pass } = stream;
    const answer = await send(site.backendUrl, 'POST', '/api/radio/authorize', {
      headers: {
        authorization: `Basic ${basic}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ action: 'stream_auth', mount, user: 'source', pass }).toString(),
      from,
    });
    await answer.body?.cancel();
    return [answer.status, answer.headers.get('icecast-auth-user')];
  };
  for (let n = 0; n < 30; n++) {
    const answers = await Promise.all(Array.from({ length: 100 }, ask));
    expect(answers.every(([status, admits]) => status === 200 && admits === '1')).toBe(true);
  }
  expect(await ask()).toEqual([429, null]);
});

describe('HAProxy', () => {
  /** Starts HAProxy as shipped, with a certificate and addresses of this test. */
  async function startHaproxy(change: (config: string) => string = (config) => config) {
    const haproxy = await obtainHaproxy();
    if (haproxy === undefined) throw new Error('a program is missing: install the package haproxy');
    const folder = await mkdtemp(path.join(tmpdir(), 'aps-haproxy-'));
    const port = await freePort();
    const subject = ['-subj', '/CN=localhost', '-days', '1', '-keyout', '-', '-out', '-'];
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    const made = await run('openssl', ['req', '-x509', ...key, ...subject], { timeout: 10_000 });
    await writeFile(path.join(folder, 'tls.pem'), made, { mode: 0o600 });
    const shipped = await readFile(path.join(projectRoot, 'deploy', 'haproxy.cfg'), 'utf8');
    const config = shipped
      .replace('/run/secrets/radio_tls', path.join(folder, 'tls.pem'))
      .replace(':8443', `127.0.0.1:${port}`)
      .replace('icecast:8000', new URL(site.icecastUrl).host);
    await writeFile(path.join(folder, 'haproxy.cfg'), change(config));
    const proxy = spawn(haproxy, ['-db', '-f', path.join(folder, 'haproxy.cfg')], {
      stdio: 'ignore',
    });
    await until(() => isTaken(port));
    return {
      port,
      async stop() {
        const ended = new Promise((resolve) => proxy.once('exit', resolve));
        proxy.kill('SIGTERM');
        await ended;
        await rm(folder, { recursive: true });
      },
    };
  }

  /** Listens by TLS. @returns the player with its first bytes, which are none if the proxy refuses the player */
  const play = (port: number, { mount }: Stream) =>
    new Promise<{ readonly player: http.ClientRequest; readonly received: Buffer }>((resolve) => {
      const player = https.get(
        `https://127.0.0.1:${port}${mount}`,
        { agent: false, rejectUnauthorized: false },
        (answer) =>
          answer
            .once('data', (received: Buffer) => resolve({ player, received }))
            .on('error', () => undefined),
      );
      player.on('error', () => resolve({ player, received: Buffer.alloc(0) }));
    });

  test('passes a source and players by TLS, and limits the connections of an address', async () => {
    const ffmpeg = await obtainFfmpeg();
    if (ffmpeg === undefined) throw new Error('a program is missing: install the package ffmpeg');
    const { port, stop } = await startHaproxy();
    const stream = await site.stream(ada);
    const target = `icecast://source:${stream.password}@127.0.0.1:${port}${stream.mount}`;
    const input = ['-re', '-f', 'lavfi', '-i', 'sine=duration=120'];
    const format = ['-b:a', '128k', '-content_type', 'audio/mpeg', '-f', 'mp3'];
    const args = [...input, ...format, '-tls', '1', target];
    const source = spawn(ffmpeg, args, { stdio: 'ignore' });
    try {
      await until(() => isLive(stream.id));
      const { player, received } = await play(port, stream);
      expect(received.length).toBeGreaterThan(0);
      const refused = await Promise.all(Array.from({ length: 120 }, () => isRefused(port)));
      expect(refused.filter(Boolean).length).toBeGreaterThan(15);
      expect((await isLive(stream.id))?.status).toBe('live');
      player.destroy();
    } finally {
      source.kill('SIGKILL');
      await stop();
    }
  });

  test('refuses listeners of a full house, and the platform still reads Icecast', async () => {
    const places = 20;
    const { port, stop } = await startHaproxy((config) =>
      config.replace(/fe_conn gt \d+/, `fe_conn gt ${places}`),
    );
    const stream = await site.stream(ada);
    const source = await connectSource(site.icecastUrl, stream);
    const stopFeeding = feed(source);
    try {
      await until(() => isLive(stream.id));
      const inside = await Promise.all(Array.from({ length: places }, () => play(port, stream)));
      expect(inside.every(({ received }) => received.length > 0)).toBe(true);
      const outside = await timed(() =>
        Promise.all(Array.from({ length: 10 }, () => play(port, stream))),
      );
      expect(outside.result.every(({ received }) => received.length === 0)).toBe(true);
      expect(outside.ms).toBeLessThan(2_000);
      await until(async () => (await isLive(stream.id))?.listeners === places);
      inside[0]?.player.destroy();
      await until(async () => (await play(port, stream)).received.length > 0);
      for (const { player } of inside) player.destroy();
    } finally {
      stopFeeding();
      source.close();
      await stop();
    }
  });
});

const isTaken = async (port: number) => !(await isPortFree(port));

/** Reports whether a handshake of TLS is refused. */
const isRefused = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => resolve(true));
    socket.on('close', () => resolve(true));
  });
