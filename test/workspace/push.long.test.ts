// @module-tag attack
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OutboundClient } from '../../src/platform/outbound/outbound.js';
import { allowedDestinations } from '../../src/platform/outbound/allowed-places.js';
import { Workspace } from '../../src/workspace/workspace.js';
import { withInstead } from '../dev/disks.js';
import { buildPrograms } from '../support/run-program.js';
import { CERTIFICATE, CERTIFICATE_KEY } from './certificate.js';
import { gitRemote, type GitRemote } from './git-remote.js';
import { plainGit, testWorkspace, type TestWorkspace } from './support.js';

/** Path of git's trusted certificates on Debian and similar systems. */
const TRUSTED = '/etc/ssl/certs/ca-certificates.crt';
const SYNC_BESIDE = fileURLToPath(new URL('sync-beside.mjs', import.meta.url));

const PASSWORD = 'pass:word @of the remote';
const LOGIN = `ada:${encodeURIComponent(PASSWORD)}`;

/** Outbound addresses that the workspace may reach. */
let allow: string;
/** Addresses that names resolve to, and the names that were resolved. */
let addresses: readonly string[];
let checked: string[];
const remotes: Pick<OutboundClient, 'addressesOf'> = {
  addressesOf: (url, signal) =>
    new OutboundClient({
      allow: allowedDestinations.parse(allow),
      resolve: (name) => {
        checked.push(name);
        return Promise.resolve(addresses);
      },
    }).addressesOf(url, signal),
};

let hub: TestWorkspace;
let remote: GitRemote;
let at: TestWorkspace;
beforeAll(async () => {
  hub = await testWorkspace();
  await hub.git('init', '-q', '-b', 'team/main');
  await hub.put('file.txt', 'one\n');
  await hub.git('add', '-A');
  await hub.git('commit', '-q', '-m', 'first');
  await plainGit(hub.around, 'clone', '-q', '--bare', hub.path, 'fresh.git');
  await plainGit(path.join(hub.around, 'fresh.git'), 'config', 'http.receivepack', 'true');
  remote = await gitRemote(hub.around);
});
afterAll(async () => {
  await remote?.close();
  await hub?.close();
});
beforeEach(async () => {
  at = await testWorkspace({ remotes });
  remote.instead = undefined;
  remote.asked.length = 0;
  [allow, addresses, checked] = [`127.0.0.1:${remote.port}`, ['127.0.0.1'], []];
  await cp(hub.path, at.path, { recursive: true });
  await cp(path.join(hub.around, 'fresh.git'), bare(), { recursive: true });
  await at.put('file.txt', 'two\n');
});
afterEach(() => at.close());

/** Returns the name of the test's remote repository, derived from its workspace. */
const nameOf = () => `${path.basename(at.around)}.git`;
const bare = () => path.join(hub.around, nameOf());
const atRemote = (...args: string[]) => plainGit(bare(), ...args).then((said) => said.trim());

const originAt = (url: string) => at.git('config', 'remote.origin.url', url);
const originOn = (host: string, login = '') =>
  originAt(`http://${login && `${login}@`}${host}:${remote.port}/${nameOf()}`);

/** Syncs and checks that the commit exists regardless of the result of the push. */
async function synced() {
  const before = (await at.workspace.gitLog(100)).length;
  const answer = await at.workspace.gitSync('changed');
  expect(answer).toMatchObject({ committed: true, message: 'changed' });
  expect(await at.workspace.gitLog(100)).toHaveLength(before + 1);
  expect(await at.git('status', '--porcelain')).toBe('');
  return answer;
}

/** Syncs and returns the error of the failed push. */
async function refusal(): Promise<string | undefined> {
  const { hash, pushed, pushError } = await synced();
  expect(pushed).toBe(false);
  expect(await atRemote('rev-parse', 'team/main')).not.toBe(hash);
  return pushError;
}

test('a commit is pushed to its branch at origin, and nothing else is', async () => {
  await originOn('127.0.0.1');
  await at.git('branch', 'another');
  await at.git('tag', 'a-tag');
  const { hash, ...answer } = await synced();
  expect(answer).toEqual({ committed: true, pushed: true, message: 'changed' });
  expect(await atRemote('for-each-ref', '--format=%(refname) %(objectname)')).toBe(
    `refs/heads/team/main ${hash}`,
  );
  expect(await atRemote('fsck', '--strict')).toBe('');
  expect(await readdir(at.views)).toEqual([]);
});

test('the login in the remote’s address is used, and no process shows it', async () => {
  await originOn('127.0.0.1', LOGIN);
  const expected = `Basic ${Buffer.from(`ada:${PASSWORD}`).toString('base64')}`;
  const seen: string[] = [];
  remote.instead = (request, response) => {
    const isAda = request.headers.authorization === expected;
    void commandLines().then((lines) => {
      seen.push(...lines);
      response.writeHead(isAda ? 418 : 401).end();
    });
  };
  const reported = await refusal();
  expect(remote.asked.length).toBeGreaterThan(0);
  expect(seen.filter((line) => line.includes(`127.0.0.1:${remote.port}`))).not.toEqual([]);
  for (const secret of [PASSWORD, encodeURIComponent(PASSWORD)]) {
    expect([reported, ...seen].join('\n')).not.toContain(secret);
  }
  remote.instead = undefined;
  await at.put('file.txt', 'three\n');
  expect(await synced()).toMatchObject({ pushed: true });
  const sent = new Set(remote.asked.map(({ authorization }) => authorization));
  expect([...sent]).toEqual([expected]);
});

test('large files are pushed without deltas, which need more memory than a helper has', async () => {
  await originOn('127.0.0.1');
  await atRemote('config', 'receive.unpackLimit', '1');
  const large = 'a line of text\n'.repeat(600_000);
  await at.put('large.txt', large);
  await at.git('add', '-A');
  await at.git('commit', '-q', '-m', 'large');
  await at.put('large.txt', `${large} and more`);
  expect(await synced()).toMatchObject({ pushed: true });
  const packs = await readdir(path.join(bare(), 'objects/pack'));
  const made = packs.filter((name) => name.endsWith('.idx')).map((name) => `objects/pack/${name}`);
  const packed = await atRemote('verify-pack', '-v', ...made);
  const blobs = packed.split('\n').filter((line) => / blob +90000\d\d /.test(line));
  // Deltas have two more fields.
  expect(blobs.map((line) => line.trim().split(/ +/).length)).toEqual([5, 5]);
});

test('a push that needs a login and has none fails with that reason', async () => {
  await originOn('127.0.0.1');
  remote.instead = (_, response) =>
    response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
  expect(await refusal()).toMatch(/requires a login, or/);
});

test('a remote branch with newer commits is left unchanged, and the local commit stays', async () => {
  await originOn('127.0.0.1');
  await atRemote('symbolic-ref', 'HEAD', 'refs/heads/team/main');
  const tree = await atRemote('rev-parse', 'HEAD^{tree}');
  const theirs = await atRemote('commit-tree', '-p', 'HEAD', '-m', 'theirs', tree);
  await atRemote('update-ref', 'refs/heads/team/main', theirs);
  expect(await refusal()).toMatch(/^The remote refused the commit/);
  expect(await atRemote('rev-parse', 'HEAD')).toBe(theirs);
});

test('commits ahead of the remote are pushed with the next commit only', async () => {
  await originOn('127.0.0.1');
  remote.instead = (_, response) => response.writeHead(503).end();
  await refusal();
  remote.instead = undefined;
  remote.asked.length = 0;
  expect(await at.workspace.gitSync()).toMatchObject({ committed: false, pushed: false });
  expect(remote.asked).toEqual([]);
  await at.put('file.txt', 'three\n');
  const { hash, pushed } = await synced();
  expect([pushed, await atRemote('rev-parse', 'team/main')]).toEqual([true, hash]);
});

test('an HTTPS remote is contacted by its name, and gets nothing if its certificate is untrusted', async () => {
  const greeted: string[] = [];
  const secure = tls.createServer({
    SNICallback: (name, report) => {
      greeted.push(name);
      report(new Error('not here'));
    },
  });
  secure.on('tlsClientError', () => undefined);
  await once(secure.listen(0, '127.0.0.1'), 'listening');
  const { port } = secure.address() as AddressInfo; // a TCP listener: never a string
  allow = `127.0.0.1:${port}`;
  await originAt(`https://${LOGIN}@code.test:${port}/${nameOf()}`);
  expect(await refusal()).toMatch(/^The push failed: the remote/);
  expect(new Set(greeted)).toEqual(new Set(['code.test']));
  await new Promise((resolve) => secure.close(resolve));
});

test('an HTTPS remote with a trusted certificate is pushed to', async (context) => {
  const bundle = path.join(at.around, 'trusted.pem');
  await writeFile(bundle, CERTIFICATE);
  const trusting = existsSync(TRUSTED) ? await withInstead(TRUSTED, bundle) : undefined;
  if (!trusting) return context.skip(`${TRUSTED} cannot be replaced by a mount here`);
  const identity = { cert: CERTIFICATE, key: CERTIFICATE_KEY };
  const secure = await gitRemote(hub.around, '127.0.0.1', identity);
  const { port } = secure;
  try {
    await buildPrograms();
    await originAt(`https://code.test:${port}/${nameOf()}`);
    const said = await runCommand([
      ...[...trusting, process.execPath, SYNC_BESIDE],
      ...[at.path, at.views, `127.0.0.1:${port}`],
    ]);
    const { hash, ...answer } = JSON.parse(said) as { hash: string };
    expect(answer).toEqual({ committed: true, pushed: true, message: 'changed' });
    expect(await atRemote('rev-parse', 'team/main')).toBe(hash);
  } finally {
    await secure.close();
  }
});

test('a name is resolved once, and git connects to the resolved address', async () => {
  // Only the test resolves this name; a final dot is another spelling of it.
  for (const host of ['code.test', 'code.test.']) {
    await at.put('file.txt', host);
    await originOn(host);
    expect(await synced()).toMatchObject({ pushed: true });
    expect(checked.splice(0)).toEqual([host]);
  }
});

test('a push to an address that is not public sends nothing, however it is spelled', async () => {
  allow = '';
  const hosts = ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', '169.254.169.254', 'code.test'];
  for (const host of hosts) {
    await at.put('file.txt', host);
    await originOn(host);
    expect(await refusal()).toBe('The URL leads to a non-public address, which is not allowed');
  }
  expect(remote.asked).toEqual([]);
});

test.each([
  ['one address of several is not public', 'code.test', ['127.0.0.1', '192.168.0.1'], /public/],
  [
    'libcurl would read the name as something else',
    '-code.test',
    ['127.0.0.1'],
    /is not supported/,
  ],
  ['it is public, and spoken to in the clear', 'code.test', ['93.184.216.34'], /^Only https/],
])('a push sends nothing if %s', async (_, host, leadTo, why) => {
  addresses = leadTo;
  await originOn(host);
  expect(await refusal()).toMatch(why);
  expect(remote.asked).toEqual([]);
});

test('a redirecting remote is not followed', async () => {
  await originOn('127.0.0.1', LOGIN);
  remote.instead = (request, response) =>
    request.url?.startsWith('/there/')
      ? response.end()
      : response.writeHead(302, { location: `/there${request.url}` }).end();
  expect(await refusal()).toMatch(/^The push failed: the remote/);
  expect(remote.asked.filter(({ line }) => line.includes('/there/'))).toEqual([]);
});

test("a push ignores the repository's own configuration", async () => {
  await originOn('127.0.0.1', LOGIN);
  const elsewhere = `http://127.0.0.1:${remote.port}/elsewhere/`;
  const marker = path.join(at.around, 'marker');
  const trap = `!touch ${marker}`;
  await writeFile(path.join(at.path, '.git/hooks/pre-push'), `#!/bin/sh\ntouch ${marker}\n`, {
    mode: 0o755,
  });
  for (const [key, value] of [
    [`url.${elsewhere}.insteadOf`, 'http://127.0.0.1'],
    [`url.${elsewhere}.pushInsteadOf`, 'http://127.0.0.1'],
    ['remote.origin.pushurl', elsewhere],
    ['remote.origin.push', '+refs/*:refs/*'],
    ['remote.origin.mirror', 'true'],
    ['remote.pushDefault', 'elsewhere'],
    ['http.proxy', elsewhere],
    ['http.extraHeader', 'X-Trap: 1'],
    ['http.followRedirects', 'true'],
    ['credential.helper', trap],
    ['core.askPass', trap],
    ['push.followTags', 'true'],
  ] as const) {
    await at.git('config', key, value);
  }
  // The first of several URLs is used.
  await at.git('config', '--add', 'remote.origin.url', elsewhere);
  const { hash } = await synced();
  expect(await atRemote('for-each-ref', '--format=%(refname) %(objectname)')).toBe(
    `refs/heads/team/main ${hash}`,
  );
  expect(remote.asked.filter(({ line }) => line.includes('elsewhere'))).toEqual([]);
  expect(await readdir(at.around)).not.toContain('marker');
});

test('a push without an origin or a branch sends nothing', async () => {
  expect(await refusal()).toBe('The repository has no origin');
  await originOn('127.0.0.1');
  await at.git('checkout', '-q', '--detach');
  await at.put('file.txt', 'three\n');
  expect(await refusal()).toBe('No branch is checked out');
  expect(remote.asked).toEqual([]);
});

describe('a remote whose answer never ends', { timeout: 60_000 }, () => {
  let dripping: net.Server;
  const sockets = new Set<net.Socket>();
  let met: Promise<net.Socket>;
  beforeEach(async () => {
    // Never quiet for so long that git times out by itself.
    dripping = net.createServer((socket) => {
      sockets.add(socket);
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const drip = setInterval(() => socket.write('x'), 100);
      socket.on('error', () => undefined).resume();
      socket.on('close', () => clearInterval(drip));
    });
    met = once(dripping, 'connection').then(([socket]: net.Socket[]) => socket ?? new net.Socket());
    await once(dripping.listen(0, '127.0.0.1'), 'listening');
    const { port } = dripping.address() as AddressInfo;
    allow = `127.0.0.1:${port}`;
    await originAt(`http://127.0.0.1:${port}/x.git`);
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => dripping.close(resolve));
  });

  test('a push to a slow remote times out, and the commit stays', async () => {
    const { path: folder, views } = at;
    const brief = new Workspace({ path: folder, views, remotes, pushMs: 300 });
    expect(await brief.gitSync()).toMatchObject({
      committed: true,
      pushed: false,
      pushError: 'The remote did not finish in time: it may have the commit',
    });
    expect(await readdir(views)).toEqual([]);
  });

  test('a push to a slow remote ends when its request is aborted, and git with it', async () => {
    const leaving = new AbortController();
    const syncing = at.workspace.gitSync('changed', leaving.signal);
    const socket = await met;
    leaving.abort(new Error('left'));
    await expect(syncing).rejects.toThrow('left');
    if (!socket.closed) await once(socket, 'close');
    expect(await readdir(at.views)).toEqual([]);
    expect(await at.workspace.gitLog(1)).toMatchObject([{ subject: 'changed' }]);
  });
});

async function runCommand([command = '', ...args]: readonly string[]): Promise<string> {
  return (await promisify(execFile)(command, args)).stdout;
}

/** Returns the command lines of all processes of this machine, which every user can read. */
async function commandLines(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
}
