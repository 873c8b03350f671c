// @module-tag attack
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  containerName,
  LABEL,
  spareNames,
  STATE_DIRECTORY,
} from '../../../src/docker/containers/container-spec.js';
import { DockerClient } from '../../../src/docker/containers/docker-client.js';
import type { WorkspaceSpec } from '../../../src/docker/containers/helper-container.js';
import { HelperGoneError } from '../../../src/docker/containers/helper-line.js';
import { WorkspaceHelpers } from '../../../src/docker/containers/workspace-helpers.js';
import type { WorkspaceCall } from '../../../src/workspace/workspace-call.js';
import type { Synced } from '../../../src/workspace/workspace.js';
import { ensureTestImage } from '../../agent-image/ensure-test-image.js';
import { testDocker } from '../../support/docker.js';
import { runInContainer } from '../../support/run-in-container.js';
import { startTcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/until.js';
import { workspaceHelper } from '../../support/workspace-helper.js';
import { gitRemote, type GitRemote } from '../../workspace/git-remote.js';
import { plainGit } from '../../workspace/support.js';

const fixture = testDocker();
const { docker, host, installation, labels } = fixture;
const FOLDER = `${STATE_DIRECTORY}/.openclaw/workspace`;

const helpersBy = (dockerHost: string | undefined, most?: number) =>
  new WorkspaceHelpers(new DockerClient({ dockerHost, installation, labels }), host.volumes, {
    ...(most !== undefined && { most }),
  });
const helpers = helpersBy(process.env.DOCKER_HOST);
/** Helpers limited to one at a time. */
const few = helpersBy(process.env.DOCKER_HOST, 1);

let hub: string;
let remote: GitRemote;
/** Host and port of the Git remote as an agent reaches it. */
let place: string;
let program: string;
/** An agent that has never run, whose workspace has a repository with an origin. */
let spec: WorkspaceSpec;
/** The commit in that repository. */
let hash: string;

const never = new AbortController().signal;
const still = () => Promise.resolve();

beforeAll(async () => {
  program = await workspaceHelper();
  hub = await mkdtemp(path.join(tmpdir(), 'aps-hub-'));
  const address = await host.bridgeAddress();
  remote = await gitRemote(hub, address);
  place = `${address}:${remote.port}`;
  await plainGit(hub, 'init', '-q', '--bare', 'work.git');
  await plainGit(path.join(hub, 'work.git'), 'config', 'http.receivepack', 'true');
  spec = await newAgent();
  await ask(spec, { what: 'write', path: 'a.txt', content: 'one' });
  await inVolume(`
    const git = (...args) => require('child_process').execFileSync('git', args);
    git('init', '-q', '-b', 'main');
    git('remote', 'add', 'origin', 'http://${place}/work.git');`);
  const { value } = (await ask(spec, { what: 'sync' })) as { value: Synced };
  expect(value).toMatchObject({ committed: true, pushed: false });
  hash = value.hash ?? '';
});
afterEach(async () => {
  remote.before = () => Promise.resolve();
  remote.asked.length = 0;
  await plainGit(path.join(hub, 'work.git'), 'update-ref', '-d', 'refs/heads/main');
});
afterAll(async () => {
  await Promise.all([helpers.close(), few.close()]);
  await fixture.close();
  await remote?.close();
  if (hub) await rm(hub, { recursive: true });
});

async function newAgent(): Promise<WorkspaceSpec> {
  const image = await ensureTestImage(docker);
  const made = await fixture.spec({ image });
  await Promise.all([host.volumes.ensure(made, 'test'), host.networks.ensure(made)]);
  const { agentId, userId } = made;
  return { agentId, userId, image, volume: containerName(agentId) };
}

async function ask(of: WorkspaceSpec, call: WorkspaceCall, by = helpers): Promise<unknown> {
  return JSON.parse(await by.call(program, of, call, { signal: never, still }));
}

/** Returns the output of a script that runs in the workspace as the agent. */
async function inVolume(script: string): Promise<string> {
  await ask(spec, { what: 'tree', depth: 1 }); // starts a helper again if the last one ended while idle
  const inWorkspace = `process.chdir('${FOLDER}'); ${script}`;
  return runInContainer(docker, spareNames(spec.agentId).files, inWorkspace);
}

async function pushed({ allow = [place], by = helpers, commit = hash, signal = never } = {}) {
  const answer = await by.push(program, spec, { allow, hash: commit }, { signal, still });
  return JSON.parse(answer) as unknown;
}

const atRemote = () =>
  plainGit(path.join(hub, 'work.git'), 'for-each-ref', '--format=%(refname) %(objectname)');

/** Returns the ids of containers that push. */
async function pushing(): Promise<string[]> {
  const filters = { label: [`${LABEL.pushes}=${spec.agentId}`] };
  return (await docker.listContainers({ all: true, filters })).map(({ Id }) => Id);
}

/** Waits until no container pushes; Docker may be just removing one. */
const isGone = () => until(async () => (await pushing()).length === 0);

/** Makes the remote withhold its answer until `end` is called; `met` resolves at its first request. */
function silence(): { readonly met: Promise<void>; end(): void } {
  let [meet, end] = [() => {}, () => {}];
  const met = new Promise<void>((resolve) => (meet = resolve));
  const over = new Promise<void>((resolve) => (end = resolve));
  remote.before = () => {
    meet();
    return over;
  };
  return { met, end: () => end() };
}

test('a commit is pushed from the agent’s network by a container that accepts no connections', async () => {
  const silent = silence();
  const pushes = pushed();
  await silent.met;
  const [id = '', ...others] = await pushing();
  expect(others).toEqual([]);
  const { Config, HostConfig, Mounts, Name, NetworkSettings } = await docker
    .getContainer(id)
    .inspect();
  expect(Mounts.map((each) => [each.Destination, each.Name, each.RW])).toEqual([
    [STATE_DIRECTORY, spec.volume, false],
  ]);
  expect(HostConfig).toMatchObject({
    ReadonlyRootfs: true,
    CapDrop: ['ALL'],
    Privileged: false,
    AutoRemove: true,
    SecurityOpt: ['no-new-privileges'],
    PidsLimit: 64,
    Memory: 256 * 1024 * 1024,
    MemorySwap: 256 * 1024 * 1024,
  });
  const own = containerName(spec.agentId);
  expect(Object.keys(NetworkSettings.Networks)).toEqual([own]);
  const { Aliases: aliases, DNSNames: names } = NetworkSettings.Networks[own] as {
    Aliases: string[] | null;
    DNSNames?: string[] | null;
  };
  expect([Name, ...(aliases ?? []), ...(names ?? [])].join()).not.toContain(spec.agentId);
  // Ports that the image declares are not published.
  expect(Object.values(NetworkSettings.Ports).filter(Boolean)).toEqual([]);
  const listens = await runInContainer(docker, id, LISTENS);
  // Docker's own name server listens on loopback.
  expect(listens.split('\n').filter((each) => each && !each.endsWith('7F'))).toEqual([]);
  expect([Config.User, Config.Labels[LABEL.agent]]).toEqual(['1000:1000', undefined]);
  expect((await host.containers.list()).map(({ agentId }) => agentId)).not.toContain(spec.agentId);

  silent.end();
  expect(await pushes).toMatchObject({ value: { pushed: true } });
  expect(await atRemote()).toBe(`refs/heads/main ${hash}\n`);
  await isGone();
});

test('a push does not count against the limit of helpers', async () => {
  await helpers.close();
  const another = await newAgent();
  const leaving = new AbortController();
  const silent = silence();
  const pushes = pushed({ signal: leaving.signal }).catch(() => undefined);
  await silent.met;
  expect(await ask(another, { what: 'tree', depth: 1 }, few)).toMatchObject({ value: {} });
  leaving.abort();
  await pushes;
  silent.end();
});

/** Prints the addresses on which a container listens. */
const LISTENS = `
  const lines = require('fs').readFileSync('/proc/net/tcp', 'utf8').split('\\n').slice(1);
  const fields = lines.map((line) => line.trim().split(/\\s+/)).filter(([, , , state]) => state === '0A');
  console.log(fields.map(([, local]) => local.split(':')[0]).join('\\n'));
`;

test('a push to an address that is not public, or of a branch that has moved, sends nothing', async () => {
  const refused = {
    value: {
      pushed: false,
      pushError: expect.stringMatching(/non-public address, which is not allowed$/),
    },
  };
  expect(await pushed({ allow: [] })).toMatchObject(refused);
  expect(await pushed({ commit: 'a'.repeat(40) })).toMatchObject({
    value: { pushed: false, pushError: 'The branch was moved by another program: sync again' },
  });
  expect(remote.asked).toEqual([]);
  await isGone();
});

test("a push neither runs nor obeys the repository's configuration", async () => {
  const elsewhere = `http://${place}/elsewhere/`;
  const trap = `${STATE_DIRECTORY}/trap`;
  const config = `
    [url "${elsewhere}"]
      insteadOf = http://${place}
      pushInsteadOf = http://${place}
    [remote "origin"]
      pushurl = ${elsewhere}
      receivepack = ${trap}
      proxy = ${elsewhere}
    [http]
      proxy = ${elsewhere}
    [credential]
      helper = ${trap}
    [core]
      askPass = ${trap}
      sshCommand = ${trap}
      gitProxy = ${trap}
      fsmonitor = ${trap}
      hooksPath = ${FOLDER}/.git/hooks
      alternateRefsCommand = ${trap}
    [gpg]
      program = ${trap}
    [push]
      gpgSign = true
  `;
  const hooks = ['pre-push', 'reference-transaction', 'post-index-change'];
  const programs = [trap, ...hooks.map((each) => `.git/hooks/${each}`)];
  const said = await inVolume(`
    const fs = require('fs');
    fs.mkdirSync('.git/hooks');
    const script = "#!/usr/local/bin/node\\nrequire('http').get('${elsewhere}trap').on('error', () => {})";
    for (const at of ${JSON.stringify(programs)}) fs.writeFileSync(at, script, { mode: 0o755 });
    fs.appendFileSync('.git/config', ${JSON.stringify(config)});
    console.log('done');`);
  expect(said).toBe('done\n');
  expect(await pushed()).toMatchObject({ value: { pushed: true } });
  expect(await atRemote()).toBe(`refs/heads/main ${hash}\n`);
  expect(remote.asked.filter(({ line }) => line.includes('elsewhere'))).toEqual([]);
});

test('a git that cannot push over the network is reported as such', async () => {
  const image = await withoutTransport(spec.image);
  try {
    const answer = await helpers.push(
      ...([program, { ...spec, image }, { allow: [place], hash }] as const),
      { signal: never, still },
    );
    expect(JSON.parse(answer)).toMatchObject({
      value: { pushed: false, pushError: expect.stringMatching(/git-remote-https is missing$/) },
    });
    expect(remote.asked).toEqual([]);
  } finally {
    await isGone();
    await docker.getImage(image).remove();
  }
});

/** Builds an image whose git has no program for HTTP. */
async function withoutTransport(image: string): Promise<string> {
  const script = `
    const folder = require('child_process').execFileSync('git', ['--exec-path']).toString().trim();
    for (const end of ['', 's']) require('fs').rmSync(folder + '/git-remote-http' + end, { force: true });`;
  const container = await docker.createContainer({
    Image: image,
    User: '0:0',
    Cmd: ['node', '-e', script],
    Labels: { ...labels },
  });
  await container.start();
  await container.wait();
  const [repo, tag] = ['agent-platform-test/without-transport', randomUUID()];
  await container.commit({ repo, tag });
  return `${repo}:${tag}`;
}

test('a push whose process has ended ends by itself', async () => {
  const proxy = await startTcpProxy(process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock');
  const gone = helpersBy(proxy.host);
  const silent = silence();
  const outcome = expect(pushed({ by: gone })).rejects.toThrow();
  await silent.met;
  proxy.cut();
  await outcome;
  await isGone();
  silent.end();
  await proxy.close();
});

test('a push that is killed, aborted or loses its network leaves nothing behind', async () => {
  const leaving = new AbortController();
  const ends: readonly [
    () => Promise<unknown>,
    AbortSignal,
    reason: typeof HelperGoneError | string,
  ][] = [
    [() => pushing().then(([id = '']) => docker.getContainer(id).kill()), never, HelperGoneError],
    [() => Promise.resolve(leaving.abort(new Error('left'))), leaving.signal, 'left'],
    [() => host.networks.remove(spec.agentId), never, HelperGoneError],
  ];
  for (const [end, signal, reason] of ends) {
    const silent = silence();
    const outcome = expect(pushed({ signal })).rejects.toThrow(reason);
    await silent.met;
    await end();
    await outcome;
    await isGone();
    silent.end();
  }
  expect(await atRemote()).toBe('');
  expect(await host.networks.find(spec.agentId)).toBeUndefined();
  await expect(pushed()).rejects.toThrow('The agent has no network');
  await isGone();
});
