import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Folder } from '../../src/workspace/files/folder.js';
import { until } from '../support/until.js';
import { processesIn, testWorkspace, type TestWorkspace } from './support.js';

let at: TestWorkspace;
beforeEach(async () => {
  at = await testWorkspace();
});
afterEach(() => at.close());

async function repository(): Promise<void> {
  await at.git('init');
  await at.put('kept.txt', 'one\n');
  await at.put('gone.txt', 'gone\n');
  await at.put('moved.txt', 'a line\n'.repeat(20));
  await at.git('add', '-A');
  await at.git('commit', '-m', 'first');
}

/** The contract's message of a sync without changes. */
const UNCHANGED = 'nothing to commit';

test('a folder without a repository has no status, no diff and no log, and cannot be synced', async () => {
  expect(await at.workspace.gitStatus()).toEqual({ isGitRepo: false });
  await expect(at.workspace.gitDiff()).rejects.toMatchObject({ status: 400 });
  await expect(at.workspace.gitLog(20)).rejects.toMatchObject({ status: 400 });
  await expect(at.workspace.gitSync()).rejects.toMatchObject({ status: 500 });
});

test('status lists each change as git does, with the old path of a rename', async () => {
  await repository();
  await at.put('kept.txt', 'two\n');
  await at.git('rm', '-q', 'gone.txt');
  await at.git('mv', 'moved.txt', 'new name.txt');
  await at.put('added/ünïcödé "and" more.txt', 'x');
  await at.git('remote', 'add', 'origin', 'https://ada:secret@code.test/ada/work.git');
  const status = await at.workspace.gitStatus();
  expect(status).toEqual({
    isGitRepo: true,
    branch: 'main',
    remote: 'https://code.test/ada/work.git',
    hasChanges: true,
    changes: [
      { status: 'D', path: 'gone.txt' },
      { status: 'M', path: 'kept.txt' },
      { status: 'R', path: 'new name.txt', from: 'moved.txt' },
      { status: '??', path: 'added/ünïcödé "and" more.txt' },
    ],
  });
});

test(
  'status is cut if long names would make an answer of many megabytes',
  { tags: 'attack' },
  async () => {
    await at.git('init');
    // A character that JSON escapes with six bytes.
    const long = '\u0001'.repeat(250);
    await mkdir(path.join(at.path, long));
    const all = Array.from({ length: 1_700 }, (_, each) => `${long}/${long}${each}`);
    await Promise.all(all.map((name) => writeFile(path.join(at.path, name), '')));
    const status = await at.workspace.gitStatus();
    const bytes = Buffer.byteLength(JSON.stringify(status));
    expect([bytes <= 4 * 1024 * 1024, bytes > 4_000_000]).toEqual([true, true]);
    expect(status).toMatchObject({ truncated: true, hasChanges: true });
  },
);

test(
  'log cuts subjects and names of megabytes at a whole character',
  { tags: 'attack' },
  async () => {
    await repository();
    const file = path.join(at.around, 'message');
    await writeFile(file, `x${'ü'.repeat(500_000)}`);
    const author = `--author=x${'ü'.repeat(60_000)} <ada@example.test>`;
    for (let each = 0; each < 2; each += 1) {
      await at.git('commit', '-q', '--allow-empty', '-F', file, ...(each === 0 ? [author] : []));
    }
    const log = await at.workspace.gitLog(20);
    expect(log).toHaveLength(3);
    const cut = `x${'ü'.repeat(999)}`;
    expect(log[0]).toMatchObject({ subject: cut, author: 'Ada' });
    expect(log[1]).toMatchObject({ subject: cut, author: cut });
    expect(log[2]).toMatchObject({ subject: 'first', author: 'Ada' });
  },
);

test.each([
  [' 1700000000 +0100', '2023-11-14T23:13:20+01:00'],
  [' 1700000000 -0000', '2023-11-14T22:13:20+00:00'],
  // A time zone that does not exist.
  [' 1700000000 +9999', '2023-11-14T22:13:20+00:00'],
  [' 1700000000 +1460', '2023-11-14T22:13:20+00:00'],
  [' 1700000000 +123456', '2023-11-14T22:13:20+00:00'],
  // No date, or a date outside of ISO 8601: the committer's.
  ['', '2024-01-02T03:04:05+02:00'],
  [' soon', '2024-01-02T03:04:05+02:00'],
  [' -5 +0000', '2024-01-02T03:04:05+02:00'],
  [' 1700000000', '2024-01-02T03:04:05+02:00'],
  [' 99999999999999 +0000', '2024-01-02T03:04:05+02:00'],
  [' 18446744073709551616 +0000', '2024-01-02T03:04:05+02:00'],
])("log returns a date that exists for the author's date %j", async (date, shown) => {
  await repository();
  const committed = ' 1704157445 +0200';
  expect(await dateOfCommit(date, committed)).toBe(shown);
  expect(await dateOfCommit(date, date)).toBe(
    shown.startsWith('2024') ? '1970-01-01T00:00:00+00:00' : shown,
  );
});

/** Commits with dates as text, and returns the date in the log. */
async function dateOfCommit(authored: string, committed: string): Promise<string | undefined> {
  const tree = (await at.git('rev-parse', 'HEAD^{tree}')).trim();
  const file = path.join(at.around, 'commit');
  const lines = [
    `tree ${tree}`,
    `author Ada <ada@example.test>${authored}`,
    `committer Ada <ada@example.test>${committed}`,
    '\nsubject\n',
  ];
  await writeFile(file, lines.join('\n'));
  const made = await at.git('hash-object', '-t', 'commit', '-w', '--literally', file);
  await at.git('update-ref', 'refs/heads/main', made.trim());
  const [commit] = await at.workspace.gitLog(1);
  expect(commit).toMatchObject({ subject: 'subject', author: 'Ada' });
  return commit?.date;
}

test('diff separates staged and unstaged changes, for a single path if requested', async () => {
  await repository();
  expect(await at.workspace.gitDiff()).toEqual({ unstaged: null, staged: null });
  await at.put('kept.txt', 'staged\n');
  await at.git('add', 'kept.txt');
  await at.put('kept.txt', 'unstaged\n');
  await at.put('gone.txt', 'changed\n');
  const { staged, unstaged } = await at.workspace.gitDiff('kept.txt');
  expect(staged).toContain('+staged');
  expect(unstaged).toContain('-staged\n+unstaged');
  expect(unstaged).not.toContain('gone.txt');
  expect((await at.workspace.gitDiff()).unstaged).toContain('gone.txt');
});

test.each(['*', ':(exclude)kept.txt', ':!kept.txt', '--output=stolen', '-p', 'gone.tx?'])(
  'diff treats a path as a literal name: %s',
  async (name) => {
    await repository();
    await at.put('kept.txt', 'two\n');
    await at.put('gone.txt', 'changed\n');
    expect(await at.workspace.gitDiff(name)).toEqual({ unstaged: null, staged: null });
    await at.put(name, 'one\n');
    await at.git('--literal-pathspecs', 'add', '-f', '--', name);
    const { staged, unstaged } = await at.workspace.gitDiff(name);
    expect([unstaged, staged?.match(/^diff --git/gm)?.length]).toEqual([null, 1]);
  },
);

test('sync commits every change, and plain git finds nothing left', async () => {
  await repository();
  await at.put('kept.txt', 'two\n');
  await at.put('sub/new.txt', 'new\n');
  await at.git('rm', '-q', 'gone.txt');
  const synced = await at.workspace.gitSync('change\n\nof files');
  expect(synced).toMatchObject({ committed: true, pushed: false, message: 'change\n\nof files' });
  expect(await at.git('status', '--porcelain')).toBe('');
  expect(await at.git('log', '-1', '--format=%H %an <%ae>%n%B')).toBe(
    `${synced.hash} Agent Platform <agent-platform@localhost>\nchange\n\nof files\n`,
  );
  expect(await at.git('ls-tree', '-r', '--name-only', 'HEAD')).toBe(
    'kept.txt\nmoved.txt\nsub/new.txt\n',
  );
  expect(await at.git('fsck', '--strict')).toBe('');
  const [newest, first] = await at.workspace.gitLog(20);
  expect(newest).toMatchObject({ hash: synced.hash, subject: 'change', author: 'Agent Platform' });
  expect(first).toMatchObject({ subject: 'first', author: 'Ada' });
  expect(await at.workspace.gitSync()).toEqual({
    committed: false,
    pushed: false,
    hash: synced.hash,
    message: UNCHANGED,
  });
});

test('sync handles ignored, removed, renamed and linked files as git does, and odd names', async () => {
  await repository();
  await at.put('.gitignore', '*.log\n');
  await at.put('noise.log', 'x');
  await at.put('.git/info/exclude', 'private.txt\n');
  await at.put('private.txt', 'x');
  await at.put('-rf', 'x');
  await at.put(':(top)*', 'x');
  await at.put('a\nb', 'x');
  await rm(path.join(at.path, 'gone.txt'));
  await at.put('gone.txt/now a folder', 'x');
  expect(await at.workspace.gitSync()).toMatchObject({ committed: true, message: 'sync changes' });
  expect((await at.git('ls-tree', '-r', '-z', '--name-only', 'HEAD')).split('\0').sort()).toEqual([
    '',
    '-rf',
    '.gitignore',
    ':(top)*',
    'a\nb',
    'gone.txt/now a folder',
    'kept.txt',
    'moved.txt',
  ]);
  expect(await at.git('status', '--porcelain')).toBe('');
});

test('sync makes a first commit with the repository’s author and stays on the branch', async () => {
  await at.git('init', '-b', 'team/first');
  await at.git('config', 'user.name', 'Grace');
  await at.git('config', 'user.email', 'grace@example.test');
  expect(await at.workspace.gitLog(20)).toEqual([]);
  expect(await at.workspace.gitSync()).toMatchObject({ committed: false, hash: null });
  await at.put('a', 'a');
  const { hash } = await at.workspace.gitSync('  ');
  expect(await at.git('log', 'team/first', '--format=%H %an <%ae> %s')).toBe(
    `${hash} Grace <grace@example.test> sync changes\n`,
  );
});

test('sync on a detached HEAD moves HEAD', async () => {
  await repository();
  await at.git('checkout', '-q', '--detach');
  await at.put('kept.txt', 'two\n');
  expect(await at.workspace.gitStatus()).toMatchObject({ branch: 'HEAD' });
  const { hash } = await at.workspace.gitSync();
  expect((await at.git('rev-parse', 'HEAD')).trim()).toBe(hash);
  expect((await at.git('rev-parse', 'main')).trim()).not.toBe(hash);
});

test('sync updates packed branches and objects', async () => {
  await repository();
  await at.git('gc', '-q');
  await at.git('pack-refs', '--all');
  await at.put('kept.txt', 'two\n');
  const { hash } = await at.workspace.gitSync();
  expect((await at.git('rev-parse', 'main')).trim()).toBe(hash);
  expect(await at.workspace.gitLog(1)).toHaveLength(1);
  expect(await at.git('fsck', '--strict')).toBe('');
});

test.each<[string, () => Promise<unknown>]>([
  [
    'a staged file with missing content',
    async () => {
      await at.git('update-index', '--add', '--cacheinfo', `100644,${'1'.repeat(40)},missing.txt`);
      await at.git('update-index', '--skip-worktree', 'missing.txt');
      const tree = (await at.git('write-tree', '--missing-ok')).trim();
      const commit = (await at.git('commit-tree', '-p', 'HEAD', '-m', 'second', tree)).trim();
      await at.git('update-ref', 'HEAD', commit);
    },
  ],
  ['its author, whose name git does not take', () => at.git('config', 'user.name', ';')],
])('a sync that fails because of %s is a 500 and changes nothing', async (_, breaks) => {
  await repository();
  await at.put('kept.txt', 'two\n');
  await breaks();
  const before = [await at.git('rev-parse', 'HEAD'), await at.git('status', '--porcelain')];
  await expect(at.workspace.gitSync()).rejects.toMatchObject({
    status: 500,
    message: expect.stringMatching(/^git [a-z-]+ failed$/),
  });
  expect([await at.git('rev-parse', 'HEAD'), await at.git('status', '--porcelain')]).toEqual(
    before,
  );
  expect(await readdir(path.join(at.path, '.git'))).not.toContain('index.lock');
  expect(await readdir(at.views)).toEqual([]);
});

test.each<[string, string, () => Promise<unknown>]>([
  ['refers to another', 'it has a commondir', () => at.put('.git/commondir', '/')],
  ['has a foreign HEAD', 'its HEAD', () => at.put('.git/HEAD', 'ref: refs/tags/x\n')],
  ['has a large HEAD', 'larger than', () => at.put('.git/HEAD', 'x'.repeat(5_000))],
  ['has an unreadable config', 'its configuration', () => at.put('.git/config', '[')],
  [
    'has a folder in place of its index',
    'not a regular file',
    async () => {
      await rm(path.join(at.path, '.git/index'));
      await mkdir(path.join(at.path, '.git/index'));
    },
  ],
])('a sync of a repository that %s is a 500, and a read of it a 400', async (_, why, breaks) => {
  await repository();
  await at.put('kept.txt', 'two\n');
  await breaks();
  const message = expect.stringContaining(why);
  await expect(at.workspace.gitSync()).rejects.toMatchObject({ status: 500, message });
  await expect(at.workspace.gitStatus()).rejects.toMatchObject({ status: 400, message });
  await expect(at.workspace.gitSync('a\0b')).rejects.toMatchObject({ status: 400 });
});

test('a partially written file is neither listed nor committed', async () => {
  await repository();
  await at.put('.agent-platform-tmp/by-somebody', 'half');
  expect(await at.workspace.gitStatus()).toMatchObject({ changes: [], hasChanges: false });
  expect(await at.workspace.gitSync()).toMatchObject({ committed: false });
});

test('a sync refuses during a merge or with conflicts, and changes nothing', async () => {
  await repository();
  await at.git('checkout', '-q', '-b', 'side');
  await at.put('kept.txt', 'side\n');
  await at.git('commit', '-qam', 'side');
  await at.git('checkout', '-q', 'main');
  await at.put('kept.txt', 'main\n');
  await at.git('commit', '-qam', 'main');
  await expect(at.git('merge', 'side')).rejects.toThrow();
  expect(await at.workspace.gitStatus()).toMatchObject({ changes: [{ status: 'UU' }] });
  const refusal = (about: string) => ({ status: 500, message: expect.stringContaining(about) });
  await expect(at.workspace.gitSync()).rejects.toMatchObject(refusal('merge or rebase'));
  await rm(path.join(at.path, '.git/MERGE_HEAD'));
  await expect(at.workspace.gitSync()).rejects.toMatchObject(refusal('conflicts'));
});

test.each(['CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge/', 'rebase-apply/'])(
  'a sync refuses during an unfinished operation with a %s and changes nothing',
  async (name) => {
    await repository();
    const before = await at.git('rev-parse', 'HEAD');
    await at.put(`.git/${name}${name.endsWith('/') ? 'head-name' : ''}`, before);
    await at.put('kept.txt', 'two\n');
    await expect(at.workspace.gitSync()).rejects.toMatchObject({
      status: 500,
      message: expect.stringContaining('merge or rebase'),
    });
    expect(await at.git('rev-parse', 'HEAD')).toBe(before);
    expect(await at.git('diff', '--name-only')).toBe('kept.txt\n');
  },
);

test('sync stores objects before the index that needs them, and the index before the branch', async () => {
  await repository();
  await at.put('kept.txt', 'two\n');
  await at.put('sub/new.txt', 'new\n');
  const seen: Record<string, string> = {};
  const move = Folder.prototype.moveTo;
  vi.spyOn(Folder.prototype, 'moveTo').mockImplementation(async function (this: Folder, ...to) {
    await move.apply(this, to);
    if (/^[0-9a-f]{38}$/.test(to[2])) return;
    // Git reports missing or broken objects here.
    seen[to[2]] = await at.git('fsck', '--strict', '--no-dangling', '--cache');
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const { hash } = await at.workspace.gitSync();
  expect(Object.entries(seen)).toEqual([
    ['index', ''],
    ['main', ''],
  ]);
  expect((await at.git('rev-parse', 'main')).trim()).toBe(hash);
});

test('a tracked submodule is not staged, even if a file has replaced it', async () => {
  await repository();
  const [head = ''] = (await at.git('rev-parse', 'HEAD')).split('\n');
  await at.git('update-index', '--add', '--cacheinfo', `160000,${head},sub`);
  await at.git('commit', '-q', '-m', 'with another');
  await at.put('sub', 'a file');
  await at.put('kept.txt', 'two\n');
  expect(await at.workspace.gitSync()).toMatchObject({ committed: true });
  expect(await at.git('ls-tree', 'HEAD', 'sub', 'kept.txt')).toMatch(/^100644 .*\n160000 /);
});

test('a change is detected even if size and times match the index', async () => {
  await repository();
  const [file, index] = [path.join(at.path, 'kept.txt'), path.join(at.path, '.git/index')];
  const put = async (content: string) => {
    await writeFile(file, content);
    await utimes(file, 1_000_000_000, 1_000_000_000);
    return Math.floor((await stat(file)).ctimeMs / 1_000);
  };
  let changed = -1;
  // Git compares whole seconds of the ctime, which cannot be set.
  for (let added = 0; added !== changed;) {
    added = await put('old\n');
    await at.git('add', 'kept.txt');
    changed = await put('new\n');
  }
  await utimes(index, 1_000_000_000, 1_000_000_000);
  expect((await at.workspace.gitDiff()).unstaged).toContain('-old\n+new');
});

test('a branch that another process moves during a sync is left unchanged', async () => {
  await repository();
  const [first = ''] = (await at.git('rev-parse', 'HEAD')).split('\n');
  await at.put('kept.txt', 'two\n');
  await at.git('commit', '-qam', 'second');
  await at.put('kept.txt', 'three\n');
  const move = Folder.prototype.moveTo;
  vi.spyOn(Folder.prototype, 'moveTo').mockImplementation(async function (this: Folder, ...to) {
    // The last step before the branch moves.
    if (to[2] === 'index') await at.git('update-ref', 'refs/heads/main', first);
    return move.apply(this, to);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  await expect(at.workspace.gitSync()).rejects.toMatchObject({ status: 409 });
  expect((await at.git('rev-parse', 'main')).trim()).toBe(first);
});

describe('locks', () => {
  const lock = () => path.join(at.path, '.git/index.lock');
  /** The lock of a process that has ended: no process with this id began at this time. */
  const LEFT = `agent-platform ${process.pid} 1\n`;

  test('a lock of another program is reported and left in place', async () => {
    await repository();
    await at.put('kept.txt', 'two\n');
    await writeFile(lock(), '');
    await expect(at.workspace.gitSync()).rejects.toMatchObject({ status: 409 });
    expect(await readFile(lock(), 'utf8')).toBe('');
  });

  test('stale locks of this product are cleared by the next start, with all other leftovers', async () => {
    await repository();
    await at.put('kept.txt', 'two\n');
    await writeFile(lock(), LEFT);
    await writeFile(path.join(at.path, '.git/refs/heads/main.lock'), LEFT);
    await at.put('.agent-platform-tmp/0123456789abcdef01234567', 'half');
    await writeFile(path.join(at.around, 'x'), '');
    await at.again().read('kept.txt');
    expect(await readdir(path.join(at.path, '.git'))).not.toContain('index.lock');
    expect(await readdir(path.join(at.path, '.git/refs/heads'))).toEqual(['main']);
    expect(await readdir(at.path)).not.toContain('.agent-platform-tmp');
    expect(await at.again().gitSync()).toMatchObject({ committed: true });
  });

  /** Sandboxes with their own pid and time namespaces can repeat the pid and start time of a killed process. */
  test('locks of a killed process with the same pid and start time as this process are cleared', async () => {
    await repository();
    await at.put('kept.txt', 'two\n');
    const stat = await readFile('/proc/self/stat', 'utf8');
    const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    const mark = `agent-platform ${process.pid} ${start}\n`;
    for (const name of ['index', 'HEAD', 'refs/heads/main'])
      await writeFile(path.join(at.path, `.git/${name}.lock`), mark);
    expect(await at.again().gitSync()).toMatchObject({ committed: true });
    const names = await readdir(path.join(at.path, '.git'), { recursive: true });
    expect(names.filter((name) => name.endsWith('.lock'))).toEqual([]);
  });

  test("locks and folders of this product's running processes are left in place", async () => {
    await repository();
    await at.put('kept.txt', 'two\n');
    const stat = await readFile(`/proc/${process.ppid}/stat`, 'utf8');
    const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    const mark = `agent-platform ${process.ppid} ${start}\n`;
    await writeFile(lock(), mark);
    const [atWork, forgotten] = [`git-${process.ppid}-atWork`, `git-${process.ppid}-forgotten`];
    for (const name of [atWork, forgotten])
      await mkdir(path.join(at.views, name), { recursive: true });
    await utimes(path.join(at.views, forgotten), 0, 0);
    await expect(at.again().gitSync()).rejects.toMatchObject({ status: 409 });
    expect(await readFile(lock(), 'utf8')).toBe(mark);
    expect(await readdir(at.views)).toEqual([atWork]);
  });

  test('locks of this process are left in place while it works, even for another sync', async () => {
    await repository();
    await at.put('kept.txt', 'two\n');
    const other = at.again();
    await other.clear();
    const move = Folder.prototype.moveTo;
    const others: unknown[] = [];
    vi.spyOn(Folder.prototype, 'moveTo').mockImplementation(async function (this: Folder, ...to) {
      // A refused sync must not clear the lock for the next one.
      for (let each = 0; to[2] === 'index' && each < 2; each += 1)
        others.push(await other.gitSync().catch(Object));
      return move.apply(this, to);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await at.workspace.gitSync()).toMatchObject({ committed: true });
    const refused = { status: 409, facts: { lock: 'index.lock' } };
    expect(others).toMatchObject([refused, refused]);
  });

  test('locks of a killed process whose pid another process now uses are cleared', async () => {
    await repository();
    await at.put('kept.txt', 'two\n');
    await at.workspace.gitStatus();
    // The lock's process was killed after this process had cleared earlier leftovers.
    await writeFile(lock(), `agent-platform ${process.ppid} 1\n`);
    await writeFile(path.join(at.path, '.git/refs/heads/main.lock'), LEFT);
    expect(await at.workspace.gitSync()).toMatchObject({ committed: true });
  });

  test.each([
    ['a branch', 'refs/heads/main', () => Promise.resolve('')],
    ['HEAD, when it is a commit by itself', 'HEAD', () => at.git('checkout', '-q', '--detach')],
  ])(
    "another program's lock on %s is reported and left, and nothing moves",
    async (_, name, begin) => {
      await repository();
      await begin();
      const before = await at.git('rev-parse', 'HEAD');
      await at.put('kept.txt', 'two\n');
      const file = path.join(at.path, `.git/${name}.lock`);
      await writeFile(file, 'written by another program');
      await expect(at.again().gitSync()).rejects.toMatchObject({
        status: 409,
        facts: { lock: `${path.basename(name)}.lock` },
      });
      expect(await readFile(file, 'utf8')).toBe('written by another program');
      expect(await at.git('rev-parse', 'HEAD')).toBe(before);
      await rm(file);
      expect(await at.workspace.gitSync()).toMatchObject({ committed: true });
    },
  );

  test('two concurrent syncs make one commit and one 409', async () => {
    await repository();
    await at.put('kept.txt', 'two\n');
    const [one, other] = await Promise.allSettled([at.workspace.gitSync(), at.workspace.gitSync()]);
    expect(one).toMatchObject({ status: 'fulfilled', value: { committed: true } });
    expect(other).toMatchObject({ status: 'rejected', reason: { status: 409 } });
  });
});

test('a sync that is aborted before it begins changes nothing', async () => {
  await repository();
  await at.put('kept.txt', 'two\n');
  const before = await at.git('rev-parse', 'HEAD');
  await expect(at.workspace.gitSync('x', AbortSignal.abort())).rejects.toThrow();
  expect(await at.git('rev-parse', 'HEAD')).toBe(before);
  expect(await readdir(path.join(at.path, '.git'))).not.toContain('index.lock');
  expect(await readdir(at.views).catch(() => [])).toEqual([]);
});

describe('git that blocks on a pipe', { timeout: 60_000 }, () => {
  const atWork = () => processesIn(at.views);
  const hangs = () =>
    until(async () => (await atWork()).some((line) => line.startsWith('git status ')), 20_000);
  const nothingLeft = async () => {
    // An aborted caller gets its error before all processes have ended.
    const left = async () => [
      ...(await atWork()),
      ...(await readdir(at.views)),
      ...(await readdir(path.join(at.path, '.git'))).filter((name) => name.endsWith('.lock')),
    ];
    await until(async () => (await left()).length === 0, 20_000);
  };
  beforeEach(async () => {
    await repository();
    await at.put('kept.txt', 'two\n');
    await at.pipe('.gitignore');
  });

  test.each<[string, (signal: AbortSignal) => Promise<unknown>]>([
    ['status', (signal) => at.workspace.gitStatus(signal)],
    ['sync', (signal) => at.workspace.gitSync('x', signal)],
  ])('blocked git is ended when its %s request is aborted', async (_, ask) => {
    const leaving = new AbortController();
    const asked = ask(leaving.signal);
    await hangs();
    leaving.abort(new Error('left'));
    await expect(asked).rejects.toThrow('left');
    await nothingLeft();
  });

  test.each<[string, () => Promise<unknown>]>([
    ['status', () => at.workspace.gitStatus()],
    ['sync', () => at.workspace.gitSync('x')],
  ])('blocked git is ended after 30 s of a %s, which fails with a 500', async (_, ask) => {
    const clocks: AbortController[] = [];
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      if (ms !== 30_000) return timeout(ms);
      const clock = new AbortController();
      clocks.push(clock);
      return clock.signal;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const asked = ask();
    await hangs();
    const late = new DOMException('late', 'TimeoutError');
    for (const clock of clocks) clock.abort(late);
    const expected = { status: 500, message: 'git did not finish within 30 s' };
    await expect(asked).rejects.toMatchObject(expected);
    await nothingLeft();
  });
});

test('a diff over 1 MB is cut and marked as cut', async () => {
  await repository();
  await at.put('kept.txt', 'a line of an ünlimited file\n'.repeat(60_000));
  const { truncated, unstaged } = await at.workspace.gitDiff();
  expect(truncated).toBe(true);
  expect(Buffer.byteLength(unstaged ?? '')).toBeLessThanOrEqual(1_048_576);
  expect(unstaged).not.toContain('\ufffd');
});
