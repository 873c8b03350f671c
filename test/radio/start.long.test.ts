import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readLocalChain } from '../../dev/chain/local-chain.js';
import { keptPorts } from '../../dev/kept-ports.js';
import { runningEnvironment } from '../../dev/running-environment.js';
import { obtainEzstream, obtainFfmpeg } from '../../dev/test-programs.js';
import { PATH_USD } from '../../src/money/chain/tempo.js';
import { Database } from '../../src/platform/database/database.js';
import { WALLET_ISSUER } from '../../src/types/sign-in-methods.js';
import { Place, RUNNING, survivors } from '../dev/launcher.js';
import { call } from '../support/http.js';
import { until } from '../support/until.js';
import { listen } from './support.js';

/** Two starts already take a minute. */
const SLOW = { timeout: 300_000 };

let place: Place;
let folder: string;
let source: ChildProcess | undefined;
beforeEach(async () => {
  place = await Place.make();
  folder = await mkdtemp(path.join(tmpdir(), 'aps-ezstream-'));
});
afterEach(async () => {
  source?.kill('SIGKILL');
  await place.close();
  await rm(folder, { recursive: true, force: true });
});

const pidOf = async (name: string) =>
  (await place.processes()).find((each) => each.name === name)?.pid ?? 0;

test(
  'npm start runs Icecast for holders of the token, and restarts it when it ends',
  SLOW,
  async () => {
    const started = place.start({ PLATFORM_TOKEN_ADDRESS: PATH_USD });
    await started.printed(RUNNING);
    const config = path.join(place.dataDir, 'radio', 'icecast.xml');
    expect((await stat(config)).mode & 0o777).toBe(0o600);
    const cookie = await holder();
    const { icecast } = keptPorts(place.dataDir);
    const made = await web(cookie, 'POST', '/api/radio/streams', { title: 'Night' });
    expect(made.status, made.text).toBe(201);
    const { sourcePassword, stream } = made.body;
    expect(stream.listenUrl).toBe(`http://127.0.0.1:${icecast}/${stream.id}.mp3`);
    source = await startEzstream(new URL(stream.listenUrl), sourcePassword);
    const isLive = async () =>
      (await web(cookie, 'GET', `/api/radio/streams?id=${stream.id}`)).body?.stream?.status ===
      'live';
    await until(isLive);
    expect((await listen(stream.listenUrl, 8_000)).status).toBe(200);
    // Measured by two observations; an address has a hundred requests a minute.
    const isMeasured = async () =>
      (await web(cookie, 'GET', '/api/radio/live')).body?.streams?.[0]?.bitrate > 0;
    await until(isMeasured, 60_000, 1_000);

    // No source is lost with the API.
    const received = listen(stream.listenUrl, 400_000);
    const api = await pidOf('api');
    process.kill(api, 'SIGKILL');
    expect((await received).status).toBe(200);
    await until(async () => ![0, api].includes(await pidOf('api')));

    // Nor with an API that hangs.
    const hung = await pidOf('api');
    process.kill(hung, 'SIGSTOP');
    try {
      expect((await listen(stream.listenUrl, 200_000)).status).toBe(200);
    } finally {
      process.kill(hung, 'SIGCONT');
    }

    const killed = await pidOf('icecast');
    const at = performance.now();
    process.kill(killed, 'SIGKILL');
    await until(async () => (await statusOf(`http://127.0.0.1:${icecast}/`)) === 404, 5_000);
    expect(performance.now() - at).toBeLessThan(5_000);
    expect(await pidOf('icecast')).not.toBe(killed);
    await until(() => isLive().catch(() => false), 60_000);
    expect((await listen(stream.listenUrl, 8_000)).status).toBe(200);

    const logs = ['api', 'worker', 'icecast'].map((name) =>
      readFile(path.join(place.dataDir, 'run', `${name}.log`), 'utf8'),
    );
    expect((await Promise.all(logs)).join('\n')).not.toContain(sourcePassword);
    const running = await place.processes();
    expect(running.map(({ name }) => name)).toContain('icecast');
    started.kill('SIGINT');
    expect(await started.ended).toBe(0);
    expect(await survivors(running)).toEqual([]);

    const without = place.start({ PLATFORM_TOKEN_ADDRESS: PATH_USD, MANAGE_ICECAST: 'never' });
    await without.printed('There is no radio: MANAGE_ICECAST is never');
    await without.printed(RUNNING);
    const refused = await web(cookie, 'GET', '/api/radio/live');
    expect([refused.status, refused.body.error]).toEqual([
      503,
      expect.stringContaining('RADIO_ICECAST_URL'),
    ]);
    without.kill('SIGINT');
    expect(await without.ended).toBe(0);
  },
);

const web = (cookie: string, method: string, route: string, body?: object) =>
  call(`http://127.0.0.1:${place.webPort}`, method, route, { headers: { cookie }, body });

const statusOf = (url: string) =>
  fetch(url).then(
    ({ status }) => status,
    () => 0,
  );

/** Registers a user whose linked wallet holds the token. @returns the session's cookie. */
async function holder(): Promise<string> {
  const credentials = { email: 'ada@example.com', password: randomUUID() };
  const { body } = await web('', 'POST', '/api/register', credentials);
  const { headers } = await web('', 'POST', '/api/auth/login', credentials);
  const subject = readLocalChain(place.dataDir)?.accounts[0]?.address.toLowerCase() ?? '';
  const { DATABASE_URL = '' } = runningEnvironment(place.dataDir, {});
  const database = new Database(DATABASE_URL, { maxConnections: 1 });
  try {
    await database.asUser(body.id).transaction((db) =>
      db.Identity.create({
        ...{ id: randomUUID(), userId: body.id, kind: 'wallet', issuer: WALLET_ISSUER },
        ...{ subject, label: subject },
      }),
    );
  } finally {
    await database.close();
  }
  return headers.get('set-cookie')?.split(';')[0] ?? '';
}

/** Starts Debian's ezstream, which sends by libshout and connects again by itself. */
async function startEzstream(target: URL, password: string): Promise<ChildProcess> {
  const [ezstream, ffmpeg] = [await obtainEzstream(), await obtainFfmpeg()];
  if (ezstream === undefined || ffmpeg === undefined) {
    throw new Error('a source is missing: install the packages ezstream and ffmpeg');
  }
  const music = path.join(folder, 'music.mp3');
  const made = spawn(
    ffmpeg,
    ['-f', 'lavfi', '-i', 'sine=duration=120', '-b:a', '128k', '-f', 'mp3', music],
    { stdio: 'ignore' },
  );
  await new Promise((resolve) => made.once('exit', resolve));
  const config = path.join(folder, 'ezstream.xml');
  await writeFile(
    config,
    `<ezstream>
      <servers><server><name>default</name><protocol>HTTP</protocol>
        <hostname>${target.hostname}</hostname><port>${target.port}</port>
        <user>source</user><password>${password}</password>
        <reconnect_attempts>0</reconnect_attempts></server></servers>
      <streams><stream><name>default</name><mountpoint>${target.pathname}</mountpoint>
        <format>MP3</format></stream></streams>
      <intakes><intake><type>file</type><filename>${music}</filename></intake></intakes>
    </ezstream>`,
    { mode: 0o600 },
  );
  return spawn(ezstream, ['-c', config], { stdio: 'ignore' });
}
