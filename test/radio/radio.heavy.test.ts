// @module-tag attack
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { obtainFfmpeg } from '../../dev/test-programs.js';
import { accountCleanups } from '../../src/account-lifecycle/account-cleanups.js';
import { TokenGate } from '../../src/accounts/token-gating/token-gate.js';
import { Database } from '../../src/platform/database/database.js';
import { RadioAdmission } from '../../src/radio/admission.js';
import { Icecast } from '../../src/radio/icecast.js';
import { readStats, type Source } from '../../src/radio/icecast-stats.js';
import { observeRadio, reasonToEnd } from '../../src/radio/observe.js';
import { passwordHash } from '../../src/radio/streams.js';
import { MediaFiles } from '../../src/videos/media-files.js';
import type { Person } from '../money/wallets/support.js';
import { textsOfRows } from '../platform/database/traces.js';
import { makeAccount, signIn } from '../support/account.js';
import { ADMIN_EMAIL } from '../support/platform-environment.js';
import { newAddress, send } from '../support/http.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { until } from '../support/until.js';
import {
  ADMIN_PASSWORD,
  AUTH_SECRET,
  connectSource,
  feed,
  listen,
  radioSite,
  silentServer,
  type RadioSite,
  type Stream,
} from './support.js';

let site: RadioSite;
let ada: Person;
let bob: Person;
let silent: Awaited<ReturnType<typeof silentServer>>;
/** Calls of the node that the platform has made. */
let calls = 0;

function countCall() {
  calls++;
  return undefined;
}

beforeAll(async () => {
  [site, silent] = await Promise.all([radioSite(), silentServer()]);
  site.node.fate = countCall;
  [ada, bob] = await Promise.all([site.holder(), site.person()]);
});
afterAll(async () => {
  silent?.close();
  await site?.close();
});

async function timed<T>(work: () => Promise<T>) {
  const began = performance.now();
  const result = await work();
  return { result, ms: performance.now() - began };
}

/** An Icecast without a source. */
const noSources = { all: () => Promise.resolve(new Map<string, Source>()) };

const live = async () => (await site.web(bob, 'GET', '/api/radio/live')).body.streams;
const isLive = async (id: string) => (await live()).find((each: { id: string }) => each.id === id);

test('admits a source, lists its stream for all users, and serves players', async () => {
  const made = await site.web(ada, 'POST', '/api/radio/streams', {
    body: { title: 'Night', description: 'Slow music', genre: 'Ambient' },
    headers: { 'idempotency-key': randomUUID() },
  });
  expect(made.status).toBe(201);
  const { sourcePassword: password, stream } = made.body;
  expect(stream).toEqual({
    id: expect.any(String),
    title: 'Night',
    description: 'Slow music',
    genre: 'Ambient',
    agentId: null,
    format: 'mp3',
    status: 'offline',
    bitrate: null,
    listeners: 0,
    peakListeners: 0,
    nowPlaying: null,
    startedAt: null,
    listenUrl: `${site.icecastUrl}/${stream.id}.mp3`,
    createdAt: expect.any(String),
  });
  const ffmpeg = await obtainFfmpeg();
  if (ffmpeg === undefined) throw new Error('ffmpeg is missing: install the package ffmpeg');
  const target = stream.listenUrl.replace('http://', `icecast://source:${password}@`);
  const input = ['-re', '-f', 'lavfi', '-i', 'sine=frequency=440:duration=60'];
  const output = ['-b:a', '128k', '-content_type', 'audio/mpeg', '-f', 'mp3', target];
  const source = spawn(ffmpeg, ['-loglevel', 'error', ...input, ...output], { stdio: 'ignore' });
  const ended = new Promise((resolve) => source.once('exit', resolve));
  try {
    await until(() => isLive(stream.id));
    const received = await listen(stream.listenUrl, 8_000);
    expect(received).toMatchObject({ status: 200, headers: { 'content-type': 'audio/mpeg' } });
    expect(received.headers).toMatchObject({
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
    });
    // A frame of MPEG audio begins with eleven set bits.
    expect(
      received.received.some(
        (byte, at) => byte === 0xff && (received.received[at + 1] ?? 0) >= 0xe0,
      ),
    ).toBe(true);
    const own = await site.web(ada, 'GET', `/api/radio/streams?id=${stream.id}`);
    expect(own.body.stream).toMatchObject({ status: 'live', startedAt: expect.any(String) });
  } finally {
    source.kill('SIGKILL');
    await ended;
  }
  await until(async () => (await isLive(stream.id)) === undefined);
  const rows = await textsOfRows(site.database.db.asPlatform());
  for (const text of [rows.join('\n'), site.logged.join('\n')]) {
    for (const secret of [password, AUTH_SECRET, ADMIN_PASSWORD])
      expect(text).not.toContain(secret);
  }
});

test('ends the source of a removed stream, which does not return', async () => {
  const stream = await site.stream(ada);
  const source = await connectSource(site.icecastUrl, stream);
  expect(source.status).toMatch(/ 200 /);
  const stop = feed(source);
  await until(() => isLive(stream.id));
  const path = `/api/radio/streams?id=${stream.id}`;
  expect((await site.web(bob, 'DELETE', path)).status).toBe(404);
  expect(await site.web(ada, 'DELETE', path)).toMatchObject({
    status: 200,
    body: { success: true },
  });
  await source.ended;
  stop();
  expect((await connectSource(site.icecastUrl, stream)).status).toMatch(/ 401 /);
  expect((await site.web(ada, 'DELETE', path)).status).toBe(404);
  const audited = await site.database.db
    .asPlatform()
    .query('SELECT actor, action FROM audit_log WHERE subject = $id ORDER BY id', {
      id: stream.id,
    });
  expect(audited).toEqual([
    { actor: ada.id, action: 'radio.create' },
    { actor: ada.id, action: 'radio.remove' },
  ]);
});

test('Icecast serves nothing but streams, and admits no source elsewhere', async () => {
  for (const path of [
    '/',
    '/index.html',
    '/status.xsl',
    '/status-json.xsl',
    '/server_version.xsl',
  ]) {
    expect([path, (await fetch(`${site.icecastUrl}${path}`)).status]).toEqual([path, 404]);
  }
  const stranger = await fetch(`${site.icecastUrl}/admin/stats`);
  expect(stranger.status).toBe(401);
  const { mount, password } = await site.stream(ada);
  expect((await fetch(`${site.icecastUrl}${mount}`)).status).toBe(404);
  for (const other of ['/live', '/admin', mount.replace('.mp3', '.opus'), '/a.mp3']) {
    const source = await connectSource(site.icecastUrl, { mount: other, password });
    source.close();
    expect([other, source.status]).toEqual([other, expect.stringContaining(' 401 ')]);
  }
});

test('the deletion of an account ends its sources and removes its streams', async () => {
  const owner = await site.holder();
  const stream = await site.stream(owner);
  const source = await connectSource(site.icecastUrl, stream);
  const stop = feed(source);
  const { log, secrets } = site.dependencies;
  const radio = accountCleanups({
    ...{ database: site.database.db, log, secrets, identityProvider: undefined },
    operations: { remove: () => Promise.reject(new Error('there are no agents')) },
    planEndings: { endAll: () => Promise.resolve(0) },
    media: new MediaFiles('/nonexistent'),
    icecast: new Icecast({ url: site.icecastUrl, adminPassword: ADMIN_PASSWORD }),
  }).find(({ name }) => name === 'radio');
  await radio?.release({ userId: owner.id, requestId: 'a request', requestedAt: new Date() });
  await source.ended;
  stop();
  expect((await connectSource(site.icecastUrl, stream)).status).toMatch(/ 401 /);
  expect((await site.web(owner, 'GET', '/api/radio/streams')).body.count).toBe(0);
});

describe('creation of a stream', () => {
  test('only a holder of the token can create a stream, administrators included', async () => {
    const { db } = site.database;
    const account = await makeAccount(db, { email: ADMIN_EMAIL, isAdmin: true });
    const admin = { ...account, cookie: await signIn(db, account) };
    for (const each of [bob, admin]) {
      const { body, status } = await site.web(each, 'POST', '/api/radio/streams', {
        body: { title: 'Night' },
      });
      expect([status, body.error]).toEqual([403, expect.stringContaining('linked wallets')]);
    }
    expect((await site.web(undefined, 'POST', '/api/radio/streams', { body: {} })).status).toBe(
      401,
    );
  });

  test.each([
    [{}, 'title is required'],
    [{ title: '' }, 'title'],
    [{ title: 'x'.repeat(101) }, 'title must be at most 100 characters'],
    [{ title: 'Night', description: 'x'.repeat(1_001) }, 'description'],
    [{ title: 'Night', genre: 'x'.repeat(51) }, 'genre'],
    [{ title: 'Night', format: 'wav' }, 'format'],
    [{ title: 'Night', bitrate: 320 }, 'bitrate'],
  ])('refuses %j, and names the wrong field', async (body, error) => {
    const refused = await site.web(bob, 'POST', '/api/radio/streams', { body });
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining(error)]);
  });

  test("refuses another user's agent", async () => {
    const body = { title: 'Night', agentId: await site.agentOf(bob) };
    const refused = await site.web(ada, 'POST', '/api/radio/streams', { body });
    expect([refused.status, refused.body.error]).toEqual([404, 'Agent not found']);
  });

  test('refuses a stream while the chain cannot be reached', async () => {
    const owner = await site.holder();
    site.node.fate = () => 'lost';
    const refused = await site.web(owner, 'POST', '/api/radio/streams', {
      body: { title: 'Night' },
    });
    site.node.fate = countCall;
    expect([
      refused.status,
      (await site.web(owner, 'GET', '/api/radio/streams')).body.count,
    ]).toEqual([503, 0]);
  });

  test('a user can create twenty streams, also with fifty concurrent requests', async () => {
    const owner = await site.holder();
    const ask = (_: unknown, n: number) =>
      site.web(owner, 'POST', '/api/radio/streams', { body: { title: `Night ${n}` } });
    expect(
      (await Promise.all(Array.from({ length: 19 }, ask))).map(({ status }) => status),
    ).toEqual(Array.from({ length: 19 }, () => 201));
    await site.database.db.asPlatform().query(`DELETE FROM idempotency_keys`);
    const last = await Promise.all(Array.from({ length: 11 }, ask));
    expect(last.filter(({ status }) => status === 201)).toHaveLength(1);
    const refused = last.find(({ status }) => status === 409);
    expect(refused?.body).toMatchObject({ code: 'STREAM_LIMIT_REACHED', current: 20, limit: 20 });
    const listed = await site.web(owner, 'GET', '/api/radio/streams?limit=15');
    expect([listed.body.count, listed.headers.get('link')]).toEqual([15, expect.any(String)]);
  });
});

describe('answer to Icecast', () => {
  const basic = (secret: string) => `Basic ${Buffer.from(`icecast:${secret}`).toString('base64')}`;
  const authorize = async (
    form: Record<string, string>,
    { authorization = basic(AUTH_SECRET), from = newAddress() } = {},
  ) => {
    const answer = await send(site.backendUrl, 'POST', '/api/radio/authorize', {
      headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form).toString(),
      from,
    });
    await answer.body?.cancel();
    return [answer.status, answer.headers.get('icecast-auth-user')];
  };
  const rightFor = ({ mount, password: pass }: Stream) => ({
    ...{ action: 'stream_auth', mount, user: 'source', pass, ip: '192.0.2.1' },
  });

  test('Icecast gets the header of an admission only for the right password', async () => {
    const right = rightFor(await site.stream(ada));
    expect(await authorize(right)).toEqual([200, '1']);
    expect(await authorize({ ...right, admin: '1' })).toEqual([200, '1']);
    const wrong: Record<string, string>[] = [
      { ...right, pass: `${right.pass}x` },
      { ...right, pass: '' },
      { ...right, user: 'admin' },
      { ...right, mount: right.mount.replace('mp3', 'ogg') },
      { ...right, mount: `/${randomUUID()}.mp3` },
      { ...right, mount: '/../admin' },
    ];
    for (const each of wrong) expect(await authorize(each)).toEqual([403, null]);
    expect(await authorize({ ...right, action: 'listener_add' })).toEqual([400, null]);
    expect(await authorize({ ...right, mount: '\0' })).toEqual([400, null]);
    expect(await authorize(right, { authorization: basic('wrong') })).toEqual([401, null]);
    expect(await authorize(right, { authorization: '' })).toEqual([401, null]);
  });

  test('Icecast gets answers without a limit by address', async () => {
    const right = rightFor(await site.stream(ada));
    const from = newAddress();
    const asked = await Promise.all(
      Array.from({ length: 130 }, () => authorize({ ...right, pass: 'wrong' }, { from })),
    );
    expect(asked.every(([status]) => status === 403)).toBe(true);
    expect(await authorize(right, { from })).toEqual([200, '1']);
  });

  test('a wrong password or a new title causes no request to the chain', async () => {
    const right = rightFor(await site.stream(await site.holder()));
    const before = calls;
    await authorize({ ...right, pass: 'wrong' });
    await authorize({ ...right, admin: '1' });
    expect(calls).toBe(before);
  });

  test('a stream of an owner who no longer holds the token is refused', async () => {
    const owner = await site.holder();
    const right = rightFor(await site.stream(owner));
    await site.database.db
      .asUser(owner.id)
      .query('DELETE FROM identities WHERE user_id = $userId', { userId: owner.id });
    expect(await authorize(right)).toEqual([403, null]);
    expect(await authorize({ ...right, admin: '1' })).toEqual([200, '1']);
  });

  test('Icecast gets an answer within two seconds while the chain hangs, and at once afterwards', async () => {
    const [first, second] = [await site.holder(), await site.holder()];
    const streams = await Promise.all([site.stream(first), site.stream(second)]);
    const [one, other] = streams.map(rightFor);
    if (!one || !other) throw new Error('two streams were created');
    const admission = new RadioAdmission({
      database: site.database.db,
      gate: new TokenGate({ platformToken: { ...site.token, rpcUrl: silent.url } }),
      sources: noSources,
      log: pino({ level: 'silent' }),
    });
    const ask = ({ mount, pass: password, user }: typeof one, isTitle = false) =>
      timed(() => admission.admits({ mount, user, password, isTitle }));
    const late = await ask(one);
    expect(late).toMatchObject({ result: false });
    expect(late.ms).toBeGreaterThan(1_000);
    expect(late.ms).toBeLessThan(2_000);
    const next = await ask(other, true);
    expect(next).toMatchObject({ result: false });
    expect(next.ms).toBeLessThan(100);
  });

  test('Icecast gets an answer within two seconds while the database hangs', async () => {
    const right = rightFor(await site.stream(ada));
    const { host, port } = new URL(site.database.url);
    const proxy = await startTcpProxy(`tcp://${host}`);
    const database = new Database(site.database.url.replace(`:${port}/`, `:${proxy.port}/`));
    let now = 0;
    const { mount, pass: password, user } = right;
    const { tokenGate: gate } = site.dependencies;
    const log = pino({ level: 'silent' });
    const admission = new RadioAdmission({
      ...{ database, gate, log, sources: noSources },
      now: () => now,
    });
    const ask = () => timed(() => admission.admits({ mount, user, password, isTitle: false }));
    try {
      expect(await ask()).toMatchObject({ result: true });
      proxy.silence();
      const late = await ask();
      expect(late).toMatchObject({ result: false });
      expect(late.ms).toBeLessThan(2_000);
      proxy.mend();
      now = 4_999;
      expect(await ask()).toMatchObject({ result: false });
      now = 5_001;
      await until(async () => (await ask()).result);
    } finally {
      proxy.mend();
      await database.close();
      await proxy.close();
    }
  });
});

describe('sources of one user', () => {
  const connect = async (streams: readonly Stream[], count: number) => {
    const sources = [];
    for (const stream of streams.slice(0, count)) {
      sources.push(await connectSource(site.icecastUrl, stream));
    }
    return sources;
  };

  test('a user sends five live streams at a time, and the next one when one has ended', async () => {
    const owner = await site.holder();
    const streams = await Promise.all(Array.from({ length: 6 }, () => site.stream(owner)));
    const sources = await connect(streams, 6);
    const stops = sources.map((source) => feed(source));
    const other = await site.stream(ada);
    try {
      expect(sources.map(({ status }) => / 200 /.test(status))).toEqual([
        ...Array.from({ length: 5 }, () => true),
        false,
      ]);
      expect(sources.at(-1)?.status).toMatch(/ 401 /);
      const ofAnother = await connectSource(site.icecastUrl, other);
      expect(ofAnother.status).toMatch(/ 200 /);
      ofAnother.close();
      sources[0]?.close();
      await until(async () => {
        const [last] = await connect(streams.slice(5), 1);
        last?.close();
        return / 200 /.test(last?.status ?? '');
      });
    } finally {
      for (const stop of stops) stop();
      for (const source of sources) source.close();
    }
  });

  test('a user keeps five of six sources that several processes have admitted', async () => {
    const owner = await site.holder();
    const streams = await Promise.all(Array.from({ length: 6 }, () => site.stream(owner)));
    const sources = streams.map(({ mount }, n) => ({
      ...{ mount, contentType: 'audio/mpeg', listeners: 0, peakListeners: 0 },
      ...{ title: null, startedAt: new Date(1_700_000_000_000 - n * 1_000), bytes: 1 },
    }));
    const ended: string[] = [];
    await observeRadio({
      database: site.database.db,
      icecast: {
        sources: () => Promise.resolve(sources),
        endSource: (mount) => Promise.resolve(void ended.push(mount)),
      },
      log: site.dependencies.log,
      now: () => 1_700_000_001_000,
    });
    // The first of the list is the latest source.
    expect(ended).toEqual([streams[0]?.mount]);
  });

  test('a source can use the password of a repeated creation a second later', async () => {
    const { mount, password } = await site.stream(ada);
    const [id = ''] = mount.slice(1).split('.');
    const source = await connectSource(site.icecastUrl, { mount, password });
    source.close();
    const renewed = 'x'.repeat(32);
    await site.database.db
      .asPlatform()
      .query('UPDATE radio_streams SET password_hash = $hash WHERE id = $id', {
        id,
        hash: passwordHash(renewed),
      });
    const began = performance.now();
    await until(async () => {
      const again = await connectSource(site.icecastUrl, { mount, password: renewed });
      again.close();
      return / 200 /.test(again.status);
    });
    expect(performance.now() - began).toBeLessThan(3_000);
  });
});

describe('titles and names', () => {
  test('a title or name changes no other entry of the list', async () => {
    const body = { title: '"><script>', description: '\u0001 -', genre: "'; --" };
    const [plain, odd] = [await site.stream(ada), await site.stream(ada, body)];
    const sources = await Promise.all(
      [plain, odd].map((stream) => connectSource(site.icecastUrl, stream)),
    );
    const stops = sources.map((source) => feed(source));
    const titleOf = async ({ id }: Stream) => (await isLive(id))?.nowPlaying;
    const entitle = async ({ mount, password }: Stream, encoded: string) => {
      const authorization = `Basic ${Buffer.from(`source:${password}`).toString('base64')}`;
      const path = `/admin/metadata?mount=${mount}&mode=updinfo&song=${encoded}`;
      const { status } = await fetch(`${site.icecastUrl}${path}`, { headers: { authorization } });
      expect(status).toBe(200);
    };
    try {
      await entitle(plain, 'Blue%20Train');
      await until(async () => (await titleOf(plain)) === 'Blue Train');
      const titles: [encoded: string, shown: string | null][] = [
        ['-', '-'],
        [
          encodeURIComponent(`"'<b>&amp;]]></title></source><source mount="/x">`),
          '"\'<b>&amp;]]></title></source><source mount="/x">',
        ],
        // XML has no such characters: Icecast leaves the title out.
        ['%01%1b%5b31m%0a', null],
        [encodeURIComponent('é'.repeat(300)), 'é'.repeat(200)],
        ['', null],
      ];
      for (const [encoded, shown] of titles) {
        await entitle(odd, encoded);
        await until(async () => (await titleOf(odd)) === shown);
        expect(await titleOf(plain)).toBe('Blue Train');
      }
      await entitle(odd, '%ff%fe%c3');
      await until(async () => (await live()).length >= 2);
      expect(await titleOf(plain)).toBe('Blue Train');
      expect((await isLive(odd.id))?.title).toBe('"><script>');
    } finally {
      for (const stop of stops) stop();
      for (const source of sources) source.close();
    }
  });
});

test('one of fifty concurrent sources gets the place', async () => {
  const stream = await site.stream(ada);
  const stops: (() => void)[] = [];
  const sources = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const source = await connectSource(site.icecastUrl, stream);
      // A silent source would lose its place while the others are requested.
      if (/ 200 /.test(source.status)) stops.push(feed(source));
      return source;
    }),
  );
  try {
    expect(stops).toHaveLength(1);
    expect(sources.filter(({ status }) => / 403 /.test(status))).toHaveLength(49);
  } finally {
    for (const stop of stops) stop();
    for (const source of sources) source.close();
  }
});

describe('an observation', () => {
  const observe = (now?: () => number) =>
    observeRadio({
      database: site.database.db,
      icecast: new Icecast({ url: site.icecastUrl, adminPassword: ADMIN_PASSWORD }),
      log: site.dependencies.log,
      ...(now && { now }),
    });

  test('ends sources of another content type, and those whose stream is removed', async () => {
    const owner = await site.holder();
    const [page, gone, good] = await Promise.all([1, 2, 3].map(() => site.stream(owner)));
    if (!page || !gone || !good) throw new Error('three streams were created');
    const sources = await Promise.all([
      connectSource(site.icecastUrl, { ...page, contentType: 'text/html' }),
      connectSource(site.icecastUrl, gone),
      connectSource(site.icecastUrl, good),
    ]);
    const [ofPage, ofGone, ofGood] = sources;
    const stops = sources.map((source) => feed(source));
    try {
      for (const { id } of [page, gone, good]) await until(() => isLive(id));
      await site.database.db
        .asPlatform()
        .query('DELETE FROM radio_streams WHERE id = $id', { id: gone.id });
      await observe();
      await Promise.all([ofPage.ended, ofGone.ended]);
      await until(async () => (await isLive(page.id)) === undefined);
      expect((await isLive(good.id))?.status).toBe('live');
      expect(ofGood.socket.destroyed).toBe(false);
    } finally {
      for (const stop of stops) stop();
      for (const source of sources) source.close();
    }
  });
});

describe('a source may not stay', () => {
  const now = Date.UTC(2026, 10, 28);
  const source = (given: Partial<Source> = {}): Source => ({
    ...{ mount: '/x.mp3', contentType: 'audio/mpeg', listeners: 0, peakListeners: 0 },
    ...{ title: null, startedAt: new Date(now - 60_000), bytes: 0, ...given },
  });
  const counts = (bytesPerSecond: number, seconds = 30) =>
    [0, seconds].map((at) => ({ at: at * 1_000, bytes: at * bytesPerSecond }));
  const mp3 = { format: 'mp3' } as const;

  test.each<[string, Parameters<typeof reasonToEnd>, string | undefined]>([
    ['with 320 kbit/s', [source(), mp3, counts(40_000), now], undefined],
    ['with much more', [source(), mp3, counts(60_000), now], 'more than 320 kbit/s'],
    ['with much more for ten seconds', [source(), mp3, counts(60_000, 10), now], undefined],
    ['without a byte', [source(), mp3, counts(0), now], 'no byte for 30 seconds'],
    ['without a byte for ten seconds', [source(), mp3, counts(0, 10), now], undefined],
    ['without a stream', [source(), undefined, [], now], 'no stream'],
    ['of another format', [source(), { format: 'ogg' }, [], now], 'content type'],
    [
      'after twelve hours',
      [source({ startedAt: new Date(now - 43_200_001) }), mp3, [], now],
      'twelve hours',
    ],
  ])('%s: %#', (_title, given, reason) => {
    expect(reasonToEnd(...given)).toBe(reason);
  });
});

test('refuses a part of an answer of Icecast, and any other document', () => {
  const source = '<source mount="/a.mp3"><title>a</title></source>';
  expect(readStats(`<?xml version="1.0"?><icestats>${source}</icestats>`)).toHaveLength(1);
  for (const part of [
    `<icestats>${source}`,
    '<html></html>',
    '',
    '{}',
    `<icestats>${source}</ices`,
  ]) {
    expect(readStats(part)).toBeUndefined();
  }
});
