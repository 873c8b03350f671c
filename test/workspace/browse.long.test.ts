// @module-tag attack
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createBackend } from '../../api/backend/backend.js';
import { BROWSE } from '../../api/backend/browse-contract.js';
import type { Listening } from '../../api/http/server.js';
import { BackendClient } from '../../api/web/backend-client.js';
import { createWeb } from '../../api/web/web.js';
import { createApiKey } from '../../src/accounts/accounts/api-keys.js';
import { Workspace } from '../../src/workspace/workspace.js';
import { makeAccount, signIn, type TestAccount } from '../support/account.js';
import { databaseAlone } from '../support/dependencies.js';
import { call, type Answer } from '../support/http.js';
import { ADMIN_EMAIL, keptLog } from '../support/platform-environment.js';
import { until } from '../support/until.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { gitRemote, type GitRemote } from './git-remote.js';
import { plainGit } from './support.js';

const KEY = 'the internal key of these tests';
const SECRET = 'the content of the operators’ file';
const PASSWORD = 'password-of-the-remote';

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let backend: Listening;
let web: Listening;
let folder: string;
let around: string;
let remote: GitRemote;
let bob: TestAccount;
let admin: TestAccount;
const { log, lines } = keptLog();

beforeAll(async () => {
  database = await testDatabase();
  folder = await mkdtemp(path.join(tmpdir(), 'aps-browse-'));
  around = await mkdtemp(path.join(tmpdir(), 'aps-remote-'));
  remote = await gitRemote(around);
  alone = await databaseAlone(database, log, {
    TRUSTED_PROXIES: '127.0.0.1',
    INTERNAL_API_KEY: KEY,
    WORKSPACE_ROOT: folder,
    OUTBOUND_ALLOW: `127.0.0.1:${remote.port}`,
  });
  backend = await createBackend(alone.dependencies).listen('127.0.0.1', 0);
  const client = new BackendClient(backend.url, KEY);
  web = await createWeb({ ...alone.dependencies, backend: client }).listen('127.0.0.1', 0);
  bob = await makeAccount(database.db);
  admin = await makeAccount(database.db, { email: ADMIN_EMAIL, isAdmin: true });
  await writeFile(path.join(folder, 'secret.txt'), SECRET);
});
afterAll(async () => {
  await web?.close();
  await backend?.close();
  await alone?.close();
  await database?.close();
  await remote?.close();
  for (const made of [folder, around]) if (made) await rm(made, { recursive: true });
});

type Headers = Readonly<Record<string, string>>;
const internal: Headers = { authorization: `Bearer ${KEY}` };

const ask = (method: string, name: string, given: { body?: unknown; headers?: Headers } = {}) =>
  call(backend.url, method, `/api/browse/${name}`, { headers: internal, ...given });

/** Sends all seven requests with plausible parameters. */
async function askAll(
  base: string,
  headers: Headers,
  agentId?: string,
): Promise<Record<string, Answer>> {
  const answers: Record<string, Answer> = {};
  for (const { method, path: at } of BROWSE) {
    const given = { path: 'secret.txt', content: 'of bob', ...(agentId && { agentId }) };
    const query = new URLSearchParams(given).toString();
    answers[`${method} ${at}`] =
      method === 'GET'
        ? await call(base, method, `${at}?${query}`, { headers })
        : await call(base, method, at, { headers, body: given });
  }
  return answers;
}

const refusals = (answers: Record<string, Answer>) => [
  ...new Set(Object.values(answers).map(({ status, body }) => `${status} ${body?.error}`)),
];

describe('requests without operator rights', () => {
  const keyOf = async ({ id: userId }: TestAccount) => {
    const owner = { userId, requestId: randomUUID() };
    const asked = { name: 'a key', site: 'here' };
    return (await createApiKey(database.db, owner, asked)).key;
  };

  test.each<[string, () => Headers | Promise<Headers>, string[]]>([
    ['nobody', () => ({}), ['401 Unauthorized']],
    ['another key', () => ({ authorization: 'Bearer sk_none' }), ['401 Unauthorized']],
    ['a user', () => ({ ...internal, 'x-user-id': bob.id }), ['400 agentId required']],
    ['somebody unknown', () => ({ ...internal, 'x-user-id': 'x' }), ['400 agentId required']],
    ['an address', () => ({ ...internal, 'x-user-email': 'x@y.z' }), ['400 agentId required']],
    [
      'a user who claims to be an admin',
      () => ({
        ...internal,
        'x-user-id': bob.id,
        'x-user-role': 'admin',
        'x-user-email': ADMIN_EMAIL,
      }),
      ['400 agentId required'],
    ],
    [
      'a user’s program',
      async () => ({ authorization: `Bearer ${await keyOf(bob)}` }),
      ['400 agentId required'],
    ],
    [
      'an administrator’s program',
      async () => ({ authorization: `Bearer ${await keyOf(admin)}` }),
      ['400 agentId required'],
    ],
  ])('the backend refuses a caller without operator rights: %s', async (_, headers, expected) => {
    const answers = await askAll(backend.url, await headers());
    expect(refusals(answers)).toEqual(expected);
    expect(await readdir(folder)).toEqual(['secret.txt']);
  });

  test('the web API refuses callers without operator rights, signed in or not', async () => {
    expect(refusals(await askAll(web.url, {}))).toEqual(['401 Unauthorized']);
    const signedIn = { cookie: await signIn(database.db, bob) };
    expect(refusals(await askAll(web.url, signedIn))).toEqual(['400 agentId required']);
    for (const user of [bob, admin]) {
      const program = { authorization: `Bearer ${await keyOf(user)}` };
      expect(refusals(await askAll(web.url, program))).toEqual(['400 agentId required']);
    }
    expect(await readdir(folder)).toEqual(['secret.txt']);
  });

  test('a request for an agent that is missing or belongs to another user is a 404', async () => {
    const signedIn = { cookie: await signIn(database.db, bob) };
    expect(refusals(await askAll(web.url, signedIn, randomUUID()))).toEqual([
      '404 Agent not found',
    ]);
    expect(refusals(await askAll(backend.url, internal, randomUUID()))).toEqual([
      '404 Agent not found',
    ]);
  });
});

test('a signed-in administrator has access on the web API and with the internal key', async () => {
  const cookie = await signIn(database.db, admin);
  const read = '/api/browse/read?path=secret.txt';
  expect((await call(web.url, 'GET', read, { headers: { cookie } })).body.content).toBe(SECRET);
  const headers = { ...internal, 'x-user-id': admin.id };
  expect((await ask('GET', 'read?path=secret.txt', { headers })).body.content).toBe(SECRET);
});

test('the operator writes, reads, lists, commits and pushes files, and finds the commit in the log', async () => {
  const written = await ask('POST', 'write', { body: { path: 'notes/a.md', content: 'größe' } });
  expect([written.status, written.body]).toEqual([200, { ok: true, path: 'notes/a.md', size: 7 }]);
  const read = await ask('GET', 'read?path=notes%2Fa.md');
  expect(Object.keys(read.body)).toEqual(['ok', 'path', 'content', 'size', 'modified']);
  const tree = await ask('GET', 'tree?depth=9');
  expect(tree.body.root.children.map(({ path: name }: { path: string }) => name)).toEqual([
    'notes',
    'secret.txt',
  ]);
  expect((await ask('GET', 'git-status')).body).toEqual({ ok: true, isGitRepo: false });
  await plainGit(folder, 'init', '-q');
  await plainGit(around, 'init', '-q', '--bare', 'w.git');
  await plainGit(path.join(around, 'w.git'), 'config', 'http.receivepack', 'true');
  const at = `127.0.0.1:${remote.port}/w.git`;
  await plainGit(folder, 'config', 'remote.origin.url', `http://ada:${PASSWORD}@${at}`);
  const status = await ask('GET', 'git-status');
  expect(status.body).toMatchObject({
    ok: true,
    isGitRepo: true,
    branch: 'main',
    remote: `http://${at}`,
    hasChanges: true,
    changes: [{ status: '??', path: 'notes/a.md' }, { path: 'secret.txt' }],
  });
  const synced = await ask('POST', 'git-sync', { body: { message: 'all of it' } });
  expect(synced.body).toMatchObject({ ok: true, committed: true, pushed: true });
  const [pushed] = (await plainGit(path.join(around, 'w.git'), 'rev-parse', 'main')).split('\n');
  expect(pushed).toBe(synced.body.hash);
  await ask('POST', 'write', { body: { path: 'notes/a.md', content: 'another' } });
  const diff = await ask('GET', 'git-diff?path=notes/a.md');
  expect(diff.body).toMatchObject({ ok: true, staged: null });
  expect(diff.body.unstaged).toContain('+another');
  const { body } = await ask('GET', 'git-log?limit=500');
  expect(body.commits).toMatchObject([{ hash: synced.body.hash, subject: 'all of it' }]);
  await rm(path.join(folder, '.git'), { recursive: true });
});

/** Creates a repository in the operators' folder for one test. */
async function repository(): Promise<void> {
  onTestFinished(() => rm(path.join(folder, '.git'), { recursive: true }));
  await plainGit(folder, 'init', '-q');
}

test('a missing depth or limit has its default, and a large one is capped', async () => {
  await repository();
  for (let each = 0; each < 101; each += 1) {
    await plainGit(folder, 'commit', '-q', '--allow-empty', '-m', String(each));
  }
  onTestFinished(() => rm(path.join(folder, '1'), { recursive: true }));
  const deep = path.join(folder, '1/2/3/4/5');
  await mkdir(deep, { recursive: true });
  const paths = async (query: string) => {
    const { body } = await ask('GET', `tree${query}`);
    return [...JSON.stringify(body).matchAll(/"path":"(1[^"]*)"/g)].map(([, found]) => found);
  };
  const commits = async (query: string) =>
    (await ask('GET', `git-log${query}`)).body.commits.length;
  expect([await paths(''), await paths('?depth=1'), await paths('?depth=9')]).toEqual([
    ['1', '1/2', '1/2/3'],
    ['1'],
    ['1', '1/2', '1/2/3', '1/2/3/4'],
  ]);
  expect([await commits(''), await commits('?limit=2'), await commits('?limit=500')]).toEqual([
    20, 2, 100,
  ]);
});

test('a commit message may have up to 10,000 characters', async () => {
  await repository();
  const [most, more] = ['m'.repeat(10_000), 'm'.repeat(10_001)];
  expect((await ask('POST', 'git-sync', { body: { message: more } })).status).toBe(400);
  const { body, status } = await ask('POST', 'git-sync', { body: { message: most } });
  expect([status, body.committed, body.message]).toEqual([200, true, most]);
});

const ENDED = [
  ['GET', 'tree', 'tree'],
  ['GET', 'git-status', 'gitStatus'],
  ['GET', 'git-diff', 'gitDiff'],
  ['GET', 'git-log', 'gitLog'],
  ['POST', 'git-sync', 'gitSync'],
] as const;
const ON_EITHER = (['backend', 'web'] as const).flatMap((listener) =>
  ENDED.map((asked) => [listener, ...asked] as const),
);

test.each(ON_EITHER)(
  'a client of the %s that disconnects aborts its request: %s %s',
  { timeout: 60_000 },
  async (listener, method, name, does) => {
    let begin = (_: AbortSignal | undefined): void => undefined;
    const begun = new Promise<AbortSignal | undefined>((resolve) => (begin = resolve));
    vi.spyOn(Workspace.prototype, does).mockImplementation((...given: unknown[]) => {
      const signal = given.find((each) => each instanceof AbortSignal);
      begin(signal);
      return new Promise<never>((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('the client disconnected')));
      });
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const { headers, url } =
      listener === 'backend'
        ? { headers: internal, url: backend.url }
        : { headers: { cookie: await signIn(database.db, admin) }, url: web.url };
    const leaving = new AbortController();
    const asked = fetch(`${url}/api/browse/${name}`, {
      method,
      headers: { ...headers, 'content-type': 'application/json' },
      signal: leaving.signal,
      ...(method === 'POST' && { body: '{}' }),
    });
    const signal = await begun;
    expect(signal?.aborted).toBe(false);
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await until(() => signal?.aborted, 20_000);
  },
);

test.each([
  ['GET', 'read', 400],
  ['GET', 'read?path=', 400],
  ['GET', 'read?path=..%2Fx', 400],
  ['GET', 'read?path=missing', 404],
  ['GET', 'tree?depth=0', 400],
  ['GET', 'tree?depth=x', 400],
  ['GET', 'git-log?limit=0', 400],
  ['GET', 'git-log', 400],
  ['GET', 'git-diff', 400],
  ['GET', 'git-diff?path=..', 400],
  ['POST', 'git-sync', 500],
])('%s %s returns %i', async (method, name, status) => {
  const answer = await ask(method, name, method === 'POST' ? { body: {} } : {});
  expect([answer.status, typeof answer.body.error]).toEqual([status, 'string']);
});

test('file contents, keys and passwords of remotes are never logged', () => {
  const logged = lines.join('\n');
  expect(logged).toContain('/api/browse/read');
  for (const secret of [SECRET, 'größe', KEY, PASSWORD]) expect(logged).not.toContain(secret);
});
