// Measures Icecast with listeners beside a relay in Node, admissions of sources beside a bare handler, and the list of
// live streams.
import { randomBytes, randomUUID } from 'node:crypto';
import http from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { poll } from '../dev/poll.js';
import { freePort } from '../dev/ports.js';
import { obtainIcecast, startIcecast } from '../dev/radio/icecast.js';
import { Database } from '../src/platform/database/database.js';
import { PATH_USD } from '../src/money/chain/tempo.js';
import { MAX_LIVE_STREAMS, passwordHash } from '../src/radio/streams.js';
import { WALLET_ISSUER } from '../src/types/sign-in-methods.js';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark, type AtEnd } from './support/cleanups.js';
import { Client } from './support/client.js';
import { makeFolder } from './support/folder.js';
import { startPaidApi, type PaidApi } from './support/paid-api.js';
import { usageOf } from './support/process-tree.js';
import { figure, median, quantile } from './support/statistics.js';
import { printTable } from './support/table.js';
import { within } from './support/within.js';

/** 128 kbit/s in frames of 26 ms, as ffmpeg sends them. */
const BYTES_A_SECOND = 16_000;
const PIECES_A_SECOND = 38;

const ANSWER_MS = 10_000;

const { values: options } = parseArgs({
  options: {
    listeners: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '30' },
    admissions: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '5' },
    streams: { type: 'string', default: '100' },
    /** Readings of the list a second. */
    readings: { type: 'string', default: '200' },
  },
});

interface Stream {
  readonly mount: string;
  readonly password: string;
}

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const program = await obtainIcecast({ manage: true });
  const port = await freePort();
  const [adminPassword, authSecret] = [1, 2].map(() => randomBytes(24).toString('hex'));
  if (adminPassword === undefined || authSecret === undefined) throw new Error('two secrets');
  const url = `http://127.0.0.1:${port}`;
  const api = await startPaidApi(folder, atEnd, {
    RADIO_ICECAST_URL: url,
    RADIO_ADMIN_PASSWORD: adminPassword,
    RADIO_AUTH_SECRET: authSecret,
    PLATFORM_TOKEN_ADDRESS: PATH_USD,
    // Every wallet has enough tokens: balances are read from the chain as usual.
    PLATFORM_TOKEN_THRESHOLD: '0',
  });
  const runDir = path.join(folder, 'run');
  const secrets = { adminPassword, authSecret };
  const engine = await startIcecast({
    ...{ program, dir: folder, runDir, port, backendUrl: api.backendUrl, ...secrets },
  });
  atEnd(() => engine.stop());
  const client = await signIn(api);
  atEnd(() => client.close());
  const streams = await makeStreams(api, Number(options.streams));

  await compareListeners(atEnd, { url, pid: engine.process.pid, streams });
  await compareAdmissions(atEnd, { api, authSecret, streams });
  await measureList(atEnd, { url, adminPassword, streams, client });
});

/** Listens to one stream of Icecast and of a relay in Node for the same time. */
async function compareListeners(
  atEnd: AtEnd,
  { pid, streams, url }: { url: string; pid: number; streams: readonly Stream[] },
): Promise<void> {
  const [stream] = streams;
  if (!stream) throw new Error('a stream is needed');
  const relay = await forkUntilMessage<{ port: number }>('bare-relay', []);
  atEnd(() => void relay.child.kill());
  const relayUrl = `http://127.0.0.1:${relay.message.port}`;
  const atRest = (await usageOf({ icecast: pid })).icecast?.memory ?? NaN;
  const stops = await Promise.all([startSource(url, stream), startSource(relayUrl, stream)]);
  await delay(1_000);
  const listeners = [url, relayUrl].flatMap((each) =>
    Array.from({ length: Number(options.listeners) }, () => play(`${each}${stream.mount}`)),
  );
  await within('the first bytes', ANSWER_MS, Promise.all(listeners.map(({ began }) => began)));
  const pids = { icecast: pid, relay: relay.child.pid ?? 0 };
  const before = await usageOf(pids);
  const began = performance.now();
  await delay(Number(options.seconds) * 1_000);
  const seconds = (performance.now() - began) / 1_000;
  const after = await usageOf(pids);
  const share = (name: keyof typeof pids) =>
    (((after[name]?.cpu ?? NaN) - (before[name]?.cpu ?? NaN)) / seconds) * 100;
  const memory = (name: keyof typeof pids) => (after[name]?.memory ?? NaN) / 1e6;
  const silent = listeners.filter(({ bytes }) => bytes() < BYTES_A_SECOND * seconds * 0.8).length;
  for (const { close } of listeners) close();
  for (const stop of stops) stop();
  relay.child.kill();
  if (silent > 0) throw new Error(`${silent} listeners received too little`);
  console.log(`\n${options.listeners} listeners at 128 kbit/s for ${options.seconds} s:\n`);
  printTable(
    ['way', '% of a core', 'MB', 'CPU over the relay', 'aim'],
    [
      [
        `Icecast (${figure(atRest / 1e6)} MB at rest, aim 25)`,
        figure(share('icecast')),
        figure(memory('icecast')),
        figure(share('icecast') / share('relay')),
        'CPU 0.5, 3 %, 30 MB',
      ],
      ['  bare node:http relay', figure(share('relay')), figure(memory('relay')), '', ''],
    ],
  );
}

/** Requests admissions one after the other, as Icecast does; every third password is wrong. */
async function compareAdmissions(
  atEnd: AtEnd,
  parts: { api: PaidApi; authSecret: string; streams: readonly Stream[] },
): Promise<void> {
  const { api, authSecret, streams } = parts;
  const bare = await forkUntilMessage<{ port: number }>('bare-admission', [api.ownerUrl]);
  atEnd(() => void bare.child.kill());
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  atEnd(() => agent.destroy());
  const authorization = `Basic ${Buffer.from(`icecast:${authSecret}`).toString('base64')}`;
  const bodies = streams.map(({ mount, password }, n) =>
    new URLSearchParams({
      ...{ action: 'stream_auth', mount, ip: '127.0.0.1', server: 'localhost', port: '8000' },
      ...{ user: 'source', pass: n % 3 === 0 ? 'wrong' : password },
    }).toString(),
  );
  let calls = 0;
  const ask = (base: string) => {
    const n = calls++;
    const headers = {
      authorization,
      'content-type': 'application/x-www-form-urlencoded',
      // Different addresses, because the limit per address is meant for one Icecast with far fewer sources.
      'x-forwarded-for': `198.18.${(n >> 8) & 255}.${n & 255}`,
    };
    return new Promise<number>((resolve, reject) => {
      const request = http.request(
        `${base}/api/radio/authorize`,
        { method: 'POST', agent, headers },
        (answer) => answer.resume().on('end', () => resolve(answer.statusCode ?? 0)),
      );
      request.on('error', reject).end(bodies[n % bodies.length]);
    });
  };
  const round = async (base: string) => {
    const times: number[] = [];
    const began = performance.now();
    for (let n = 0; n < Number(options.admissions); n++) {
      const asked = performance.now();
      const status = await ask(base);
      times.push(performance.now() - asked);
      if (status !== 200 && status !== 403) throw new Error(`an admission is answered ${status}`);
    }
    return {
      perSecond: (times.length / (performance.now() - began)) * 1_000,
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
    };
  };
  const bareUrl = `http://127.0.0.1:${bare.message.port}`;
  const [ours, theirs]: Awaited<ReturnType<typeof round>>[][] = [[], []];
  for (let n = 0; n <= Number(options.rounds); n++) {
    const [our, their] = [await round(api.backendUrl), await round(bareUrl)];
    if (n === 0) continue; // V8 compiles
    ours?.push(our);
    theirs?.push(their);
  }
  bare.child.kill();
  const of = (rounds: typeof ours = [], name: 'p50' | 'p99' | 'perSecond') =>
    median(rounds.map((each) => each[name]));
  const cells = (name: string, rounds: typeof ours) => [
    name,
    figure(of(rounds, 'perSecond')),
    figure(of(rounds, 'p50')),
    figure(of(rounds, 'p99')),
  ];
  console.log(
    `Admissions one after the other, medians of ${options.rounds} rounds of ${options.admissions} in turns:\n`,
  );
  printTable(
    ['way', 'a second', 'p50 ms', 'p99 ms', 'over it', 'aim'],
    [
      [
        ...cells('admissions, a third refused', ours),
        figure(of(ours, 'perSecond') / of(theirs, 'perSecond')),
        '0.6, p99 20 ms',
      ],
      [...cells('  bare select and hash', theirs), '', ''],
    ],
  );
}

/** Reads the list of live streams at a fixed rate. */
async function measureList(
  atEnd: AtEnd,
  parts: { url: string; adminPassword: string; streams: readonly Stream[]; client: Client },
): Promise<void> {
  const { client, streams, url } = parts;
  // One after the other, so that no place in Icecast's queue of connections is missing.
  for (const stream of streams) {
    const stop = await startSource(url, stream, 1_000);
    atEnd(stop);
  }
  const counted = () => client.json<{ count: number }>('GET', '/api/radio/live');
  const allAreLive = async () => (await counted()).count === streams.length || undefined;
  if ((await poll(allAreLive, { timeoutMs: 10_000 })) === undefined) {
    throw new Error(`only ${(await counted()).count} streams are live`);
  }
  const before = await connectionsOf(parts);
  const [rate, seconds] = [Number(options.readings), 10];
  const times: Promise<number>[] = [];
  const began = performance.now();
  for (let n = 0; n < rate * seconds; n++) {
    const early = began + (n / rate) * 1_000 - performance.now();
    if (early > 0) await delay(early);
    const due = began + (n / rate) * 1_000;
    times.push(client.send('GET', '/api/radio/live').then(() => performance.now() - due));
  }
  const measured = await Promise.all(times);
  const asked = (await connectionsOf(parts)) - before - 1;
  console.log(`The list with ${streams.length} live streams, ${rate} readings a second:\n`);
  printTable(
    ['way', 'p50 ms', 'p99 ms', 'requests to Icecast a second', 'aim'],
    [
      [
        'GET /api/radio/live',
        figure(quantile(measured, 0.5)),
        figure(quantile(measured, 0.99)),
        figure(asked / seconds),
        'p99 50 ms, 1',
      ],
    ],
  );
}

/** Returns how many connections Icecast has counted since its start. */
async function connectionsOf({ adminPassword, url }: { url: string; adminPassword: string }) {
  const authorization = `Basic ${Buffer.from(`admin:${adminPassword}`).toString('base64')}`;
  const answer = await fetch(`${url}/admin/stats`, {
    headers: { authorization },
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  return Number(/<connections>(\d+)</.exec(await answer.text())?.[1]);
}

/** Connects as a source, and sends until the returned function is called. */
async function startSource(
  url: string,
  { mount, password }: Stream,
  bytesASecond = BYTES_A_SECOND,
): Promise<() => void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => undefined);
  const basic = Buffer.from(`source:${password}`).toString('base64');
  socket.write(
    `SOURCE ${mount} HTTP/1.0\r\nAuthorization: Basic ${basic}\r\nContent-Type: audio/mpeg\r\n\r\n`,
  );
  const answered = new Promise<string>((resolve) => {
    socket.once('data', (data) => resolve(data.toString('latin1')));
    socket.once('close', () => resolve('closed'));
  });
  const answer = await within('the answer to a source', ANSWER_MS, answered);
  if (!/ 200 /.test(answer)) throw new Error(`a source is answered ${answer.split('\r\n')[0]}`);
  const piece = Buffer.alloc(Math.ceil(bytesASecond / PIECES_A_SECOND), 0x55);
  const timer = setInterval(() => socket.write(piece), 1_000 / PIECES_A_SECOND);
  return () => {
    clearInterval(timer);
    socket.destroy();
  };
}

/** Plays a stream. `began` resolves with its first bytes. */
function play(url: string) {
  let bytes = 0;
  let begin: () => void = () => undefined;
  const began = new Promise<void>((resolve) => (begin = resolve));
  const request = http.get(url, { agent: false }, (answer) => {
    answer.on('error', () => undefined);
    answer.on('data', (data: Buffer) => {
      bytes += data.length;
      begin();
    });
  });
  request.on('error', () => undefined);
  return { began, bytes: () => bytes, close: () => request.destroy() };
}

/** Registers a user, and returns a client with the session. */
async function signIn({ webUrl }: PaidApi): Promise<Client> {
  const anonymous = new Client(webUrl, {});
  const credentials = { email: 'bench@example.org', password: randomUUID() };
  await anonymous.json('POST', '/api/register', credentials);
  const { headers } = await anonymous.send('POST', '/api/auth/login', credentials);
  anonymous.close();
  const cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  return new Client(webUrl, { cookie });
}

/** Stores streams of users with linked wallets, as many of each as may be live. */
async function makeStreams({ servingUrl }: PaidApi, count: number): Promise<Stream[]> {
  const database = new Database(servingUrl, { maxConnections: 1 });
  const streams: Stream[] = [];
  let userId = '';
  for (let n = 0; n < count; n++) {
    if (n % MAX_LIVE_STREAMS === 0) userId = await makeHolder(database);
    const [id, password] = [randomUUID(), randomBytes(24).toString('base64url')];
    await database.asUser(userId).query(
      `INSERT INTO radio_streams (id, user_id, title, format, password_hash)
       VALUES ($id, $userId, 'Night', 'mp3', $hash)`,
      { id, userId, hash: passwordHash(password) },
    );
    streams.push({ mount: `/${id}.mp3`, password });
  }
  await database.close();
  return streams;
}

/** Stores a user with a linked wallet. @returns the user's id. */
async function makeHolder(database: Database): Promise<string> {
  const [userId, email] = [randomUUID(), `${randomUUID()}@example.org`];
  await database.asPlatform().query(
    `INSERT INTO users (id, email, name, created_at, updated_at)
     VALUES ($userId, $email, 'Ada', now(), now())`,
    { userId, email },
  );
  const subject = privateKeyToAddress(generatePrivateKey()).toLowerCase();
  await database.asUser(userId).transaction((db) =>
    db.Identity.create({
      ...{ id: randomUUID(), userId, kind: 'wallet', issuer: WALLET_ISSUER },
      ...{ subject, label: subject },
    }),
  );
  return userId;
}
