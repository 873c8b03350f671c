// @module-tag attack
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BROWSE } from '../../api/backend/browse-contract.js';
import { containerName, LABEL, spareNames } from '../../src/docker/containers/container-spec.js';
import { testDocker } from '../support/docker.js';
import { until } from '../support/until.js';
import type { Answer } from '../support/http.js';
import { testPlatform, type TestPlatform, type TestUser } from '../support/platform.js';
import { runInContainer } from '../support/run-in-container.js';
import { gitRemote, type GitRemote } from './git-remote.js';
import { plainGit } from './support.js';

const FOLDER = '/home/node/.openclaw/workspace';

let platform: TestPlatform;
let ada: TestUser;
let bob: TestUser;
let agentId: string;

/** The folder of the remote repositories. */
let hub: string;
let remote: GitRemote;

beforeAll(async () => {
  const address = await testDocker().host.bridgeAddress();
  hub = await mkdtemp(path.join(tmpdir(), 'aps-hub-'));
  remote = await gitRemote(hub, address);
  const place = `${address}:${remote.port}`;
  platform = await testPlatform({ env: { OUTBOUND_ALLOW: place } });
  [ada, bob] = await Promise.all([platform.signUp('network'), platform.signUp('network')]);
  agentId = await platform.runningAgent(ada, { model: 'gpt-4' });
});
afterAll(async () => {
  await platform?.dockerHost.workspaces.close();
  await platform?.close();
  await remote?.close();
  if (hub) await rm(hub, { recursive: true });
});

const ask = (name: string, query: Readonly<Record<string, string>> = {}) => {
  const asked = new URLSearchParams({ agentId, ...query }).toString();
  return platform.web(ada, 'GET', `/api/browse/${name}?${asked}`);
};
const send = (name: string, body: object) =>
  platform.web(ada, 'POST', `/api/browse/${name}`, { body: { agentId, ...body } });
const inAgent = (script: string) => runInContainer(platform.docker, containerName(agentId), script);
const reported = ({ body, status }: Answer) => `${status} ${body.error ?? 'well'}`;

async function helpers(id = agentId): Promise<number> {
  const filters = { label: [`${LABEL.files}=${id}`] };
  return (await platform.docker.listContainers({ all: true, filters })).length;
}

/** Sends all seven requests for one agent with plausible parameters and returns the distinct results. */
async function askAll(how: 'web' | 'backend', user: TestUser | undefined, id: string) {
  const answers = BROWSE.map(({ method, path }) => {
    const given = { agentId: id, path: 'answer.txt', content: 'of bob' };
    return method === 'GET'
      ? platform[how](user, method, `${path}?${new URLSearchParams(given).toString()}`)
      : platform[how](user, method, path, { body: given });
  });
  return [...new Set((await Promise.all(answers)).map(reported))];
}

test('the owner writes a file that the agent reads, and reads what the agent writes', async () => {
  const written = await send('write', { path: 'notes/größe.md', content: 'by Ada\n' });
  expect([written.status, written.body]).toEqual([
    200,
    { ok: true, path: 'notes/größe.md', size: 7 },
  ]);
  const seen = await inAgent(`
    const fs = require('fs');
    process.stdout.write(fs.readFileSync('${FOLDER}/notes/größe.md', 'utf8'));
    fs.writeFileSync('${FOLDER}/answer.txt', 'by the agent');
  `);
  expect(seen).toBe('by Ada\n');
  const read = await ask('read', { path: 'answer.txt' });
  expect([read.status, read.body.content]).toEqual([200, 'by the agent']);
  const { root } = (await ask('tree')).body;
  expect(root.children.map(({ path }: { path: string }) => path)).toEqual(['notes', 'answer.txt']);
});

test('changes by the agent appear in the status, are committed and appear in the log', async () => {
  expect((await ask('git-status')).body).toEqual({ ok: true, isGitRepo: false });
  expect([reported(await ask('git-diff')), reported(await send('git-sync', {}))]).toEqual([
    '400 Not a git repository',
    '500 Not a git repository',
  ]);
  const run = `require('child_process').execFileSync`;
  await inAgent(`${run}('git', ['init', '-q', '-b', 'main'], { cwd: '${FOLDER}' })`);
  expect((await ask('git-status')).body).toMatchObject({
    isGitRepo: true,
    branch: 'main',
    remote: null,
    hasChanges: true,
    changes: [
      { status: '??', path: 'answer.txt' },
      { status: '??', path: 'notes/größe.md' },
    ],
  });
  const synced = await send('git-sync', { message: 'all of it' });
  expect(synced.body).toMatchObject({
    ok: true,
    committed: true,
    pushed: false,
    pushError: 'The repository has no origin',
  });
  await send('write', { path: 'answer.txt', content: 'by Ada' });
  expect((await ask('git-diff', { path: 'answer.txt' })).body.unstaged).toContain('+by Ada');
  const { commits } = (await ask('git-log')).body;
  expect(commits).toMatchObject([{ hash: synced.body.hash, subject: 'all of it' }]);
  const args = `['log', '--format=%H %s']`;
  expect(await inAgent(`process.stdout.write(${run}('git', ${args}, { cwd: '${FOLDER}' }))`)).toBe(
    `${synced.body.hash} all of it\n`,
  );
});

/** Changes a file and commits the change, whether or not the push succeeds. */
async function syncedChange(content: string): Promise<Answer> {
  await send('write', { path: 'answer.txt', content });
  const synced = await send('git-sync', { message: content });
  const { commits } = (await ask('git-log')).body;
  expect(commits[0]).toMatchObject({ hash: synced.body.hash, subject: content });
  return synced;
}

/** Changes a file, commits, and checks the pushed commit at the remote. */
async function pushedChange(content: string): Promise<void> {
  const synced = await syncedChange(content);
  expect([synced.status, synced.body]).toEqual([
    200,
    { ok: true, committed: true, pushed: true, hash: synced.body.hash, message: content },
  ]);
  const args = ['log', '-1', '--format=%H %s', 'main'];
  expect(await plainGit(path.join(hub, 'work.git'), ...args)).toBe(
    `${synced.body.hash} ${content}\n`,
  );
}

test('a commit is pushed to origin over the agent’s own network', async () => {
  await plainGit(hub, 'init', '-q', '--bare', 'work.git');
  await plainGit(path.join(hub, 'work.git'), 'config', 'http.receivepack', 'true');
  const origin = `http://${remote.address}:${remote.port}/work.git`;
  const git = (...args: string[]) =>
    inAgent(
      `require('child_process').execFileSync('git', ${JSON.stringify(args)}, { cwd: '${FOLDER}' })`,
    );
  await git('remote', 'add', 'origin', origin);
  let end = () => {};
  remote.before = () => new Promise((resolve) => (end = resolve as () => void));
  const first = pushedChange('by Ada, for all');
  await until(() => remote.asked.length > 0);
  expect(reported(await send('git-sync', {}))).toBe(
    '409 Another sync of this workspace is under way',
  );
  remote.before = () => Promise.resolve();
  end();
  await first;
  expect((await ask('git-status')).body).toMatchObject({ remote: origin, hasChanges: false });
  expect(await helpers()).toBe(1);
  await git('remote', 'set-url', 'origin', 'http://169.254.169.254/latest/');
  expect(await syncedChange('by Ada')).toMatchObject({
    status: 200,
    body: {
      pushed: false,
      pushError: 'The URL leads to a non-public address, which is not allowed',
    },
  });
  await git('remote', 'set-url', 'origin', origin);
  expect(await helpers()).toBe(1);
});

test("other users get no access to the agent's workspace on either listener", async () => {
  const unknown = randomUUID();
  expect(await askAll('web', bob, agentId)).toEqual(['404 Agent not found']);
  expect(await askAll('backend', bob, agentId)).toEqual(['404 Agent not found']);
  expect(await askAll('web', ada, unknown)).toEqual(['404 Agent not found']);
  expect(await askAll('backend', undefined, unknown)).toEqual(['404 Agent not found']);
  expect(await askAll('web', undefined, agentId)).toEqual(['401 Unauthorized']);
  expect((await ask('read', { path: 'answer.txt' })).body.content).toBe('by Ada');
});

test('only the workspace is accessible, even if the agent replaces it with links', async () => {
  const paths = ['../.env', '.git/config', 'up/.env', 'there'];
  await inAgent(`
    const fs = require('fs');
    fs.symlinkSync('..', '${FOLDER}/up');
    fs.symlinkSync('/etc/passwd', '${FOLDER}/there');
  `);
  const answers = await Promise.all(paths.map((path) => ask('read', { path })));
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
  await inAgent(`
    const fs = require('fs');
    fs.renameSync('${FOLDER}', '${FOLDER}-kept');
    fs.symlinkSync('.', '${FOLDER}');
  `);
  const through = await Promise.all([
    ask('read', { path: '.env' }),
    ask('tree'),
    ask('git-status'),
  ]);
  expect(through.map(reported)).toEqual(Array(3).fill('400 path leads through a link'));
  await inAgent(`
    const fs = require('fs');
    fs.unlinkSync('${FOLDER}');
    fs.renameSync('${FOLDER}-kept', '${FOLDER}');
  `);
});

test('a killed sync leaves the old state or the complete commit, and no lock', async () => {
  await send('write', { path: 'large.txt', content: 'x'.repeat(900_000) });
  const before = (await ask('git-log')).body.commits.length;
  let isDone = false;
  const syncing = send('git-sync', { message: 'killed' }).then(() => (isDone = true));
  await until(async () => {
    const seen = await inAgent(
      `process.stdout.write(String(require('fs').existsSync('${FOLDER}/.git/index.lock')))`,
    );
    return seen === 'true' || isDone;
  });
  const container = platform.docker.getContainer(spareNames(agentId).files);
  await container.kill().catch(() => undefined); // the container may already have ended
  await syncing;
  await send('git-sync', { message: 'again' });
  const { commits } = (await ask('git-log')).body;
  expect(commits.length).toBe(before + 1);
  expect((await ask('git-status')).body.changes).toEqual([]);
  const left = await inAgent(`
    const fs = require('fs');
    // With the types of files it follows no link: one leads back to where this begins.
    const files = fs.readdirSync('${FOLDER}', { recursive: true, withFileTypes: true });
    const names = files.map(({ name }) => name);
    process.stdout.write(names.filter((name) => /lock$|agent-platform-tmp/.test(name)).join());
  `);
  expect(left).toBe('');
});

test('the workspace of a stopped agent remains accessible', async () => {
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/stop?wait=60`);
  await platform.becomes(agentId, 'stopped');
  await platform.dockerHost.workspaces.close();
  expect((await ask('read', { path: 'answer.txt' })).body.content).toBe('by Ada');
  expect((await send('write', { path: 'b.txt', content: 'while it rests' })).status).toBe(200);
  await pushedChange('by Ada, while it rests');
  await platform.dockerHost.networks.remove(agentId);
  expect(await syncedChange('by Ada, without a network')).toMatchObject({
    status: 200,
    body: { pushed: false, pushError: expect.stringMatching(/^The agent has no network/) },
  });
  await platform.backend(ada, 'POST', `/api/agents/${agentId}/start?wait=60`);
  await platform.becomes(agentId, 'active');
  expect(
    await inAgent(`process.stdout.write(require('fs').readFileSync('${FOLDER}/b.txt', 'utf8'))`),
  ).toBe('while it rests');
});

test('reads and writes are refused while the memory is being replaced', async () => {
  const id = randomUUID();
  const replacing = `INSERT INTO operations (id, agent_id, user_id, kind)
    VALUES ('${id}', '${agentId}', '${ada.id}', 'reset-memory')`;
  await platform.asOwner(replacing);
  expect(await askAll('web', ada, agentId)).toEqual([
    '409 The memory of the agent is being replaced: try again when it is done',
  ]);
  await platform.asOwner(`DELETE FROM operations WHERE id = '${id}'`);
  expect((await ask('tree')).status).toBe(200);
});

test('a removed agent is not found by anyone and leaves no helper container', async () => {
  expect((await ask('tree')).status).toBe(200);
  expect(await helpers()).toBe(1);
  const removed = await platform.backend(ada, 'DELETE', `/api/agents/${agentId}`);
  expect(removed.status).toBe(200);
  expect(await askAll('web', ada, agentId)).toEqual(['404 Agent not found']);
  await until(async () => !(await platform.dockerHost.owners()).has(agentId));
  expect(await helpers()).toBe(0);
});
