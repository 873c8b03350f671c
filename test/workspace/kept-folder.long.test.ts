import { createHash } from 'node:crypto';
import { appendFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Folder } from '../../src/workspace/files/folder.js';
import { ViewFolderCache } from '../../src/workspace/git/kept-folder.js';
import { findRepository } from '../../src/workspace/git/repository.js';
import { testWorkspace, type TestWorkspace } from './support.js';

/** Moves the clock so that past writes no longer count as recent. */
const settle = () => vi.setSystemTime(vi.getRealSystemTime() + 3_000);

let at: TestWorkspace;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] });
  at = await testWorkspace();
  await at.git('init', '-q');
  await at.put('kept.txt', 'one\n');
  await at.git('add', '-A');
  await at.git('commit', '-q', '-m', 'first');
  await at.git('commit', '-q', '-m', 'second', '--allow-empty');
});
afterEach(async () => {
  vi.useRealTimers();
  await at?.close();
});

const views = () => readdir(at.views);
const changes = async () => {
  const status = await at.workspace.gitStatus();
  return status.isGitRepo ? status.changes.map((each) => `${each.status} ${each.path}`) : undefined;
};

describe('an unchanged repository', () => {
  beforeEach(settle);

  test('an unchanged repository reuses the view of the previous request, also concurrently', async () => {
    expect(await changes()).toEqual([]);
    const kept = await views();
    expect(kept).toHaveLength(1);

    await at.put('new.txt', 'two\n');
    expect(await Promise.all([changes(), changes(), at.workspace.gitLog(1)])).toMatchObject([
      ['?? new.txt'],
      ['?? new.txt'],
      [{ subject: 'second' }],
    ]);
    expect(await views()).toEqual(kept);
  });

  test.each<[string, () => Promise<unknown>, string[]]>([
    ['an index', () => at.git('add', '-A'), ['A new.txt']],
    [
      'a list of what is ignored',
      () => appendFile(path.join(at.path, '.git/info/exclude'), 'new.txt\n'),
      [],
    ],
    ['line ends', () => at.git('config', 'core.autocrlf', 'input'), ['?? new.txt']],
    ['a list of attributes', () => at.put('.git/info/attributes', '* text=auto\n'), ['?? new.txt']],
    ['a commit', () => at.git('commit', '-q', '--allow-empty', '-m', 'b'), ['?? new.txt']],
    [
      'an end of history',
      async () => at.put('.git/shallow', await at.git('rev-parse', 'HEAD')),
      ['?? new.txt'],
    ],
    ['a branch', () => at.git('checkout', '-q', '-b', 'other'), ['?? new.txt']],
  ])('a view is rebuilt at once after a change of %s', async (_, change, expected) => {
    await changes();
    const kept = await views();
    await at.put('new.txt', 'two\n');
    await change();

    expect(await changes()).toEqual(expected);
    expect(await at.workspace.gitLog(9)).toHaveLength(
      Number(await at.git('rev-list', '--count', 'HEAD')),
    );
    settle();
    expect(await changes()).toEqual(expected);
    expect(await views()).toHaveLength(1);
    expect(await views()).not.toEqual(kept);
  });

  test('a view is rebuilt after a failure in it', async () => {
    await changes();
    const [kept = ''] = await views();
    await rm(path.join(at.views, kept, 'HEAD'));
    await expect(changes()).rejects.toMatchObject({ status: 500 });
    expect(await views()).toEqual([]);
    expect(await changes()).toEqual([]);
  });

  test('a repository with a large index is read again for each request', async () => {
    const index = path.join(at.path, '.git/index');
    const body = (await readFile(index)).subarray(0, -20);
    // An extension that git skips, because its name is unknown.
    const [name, length] = [Buffer.from('XLEN'), Buffer.alloc(4)];
    length.writeUInt32BE(4 * 1024 * 1024);
    const large = Buffer.concat([body, name, length, Buffer.alloc(4 * 1024 * 1024)]);
    const sum = createHash('sha1').update(large).digest();
    await writeFile(index, Buffer.concat([large, sum]));
    settle();
    expect(await changes()).toEqual([]);
    expect(await views()).toEqual([]);
  });

  test('a commit uses a view of its own', async () => {
    await changes();
    const kept = await views();
    await at.put('new.txt', 'two\n');
    expect(await at.workspace.gitSync()).toMatchObject({ committed: true });
    expect(await views()).toEqual(kept);
    expect(await changes()).toEqual([]);
  });

  test('a view that was removed is rebuilt', async () => {
    await changes();
    const [kept = ''] = await views();
    await rm(path.join(at.views, kept), { recursive: true });
    expect(await changes()).toEqual([]);
    expect(await views()).not.toEqual([kept]);
  });

  test('a starting process leaves the views of a running process, however old', async () => {
    await changes();
    const kept = await views();
    for (let asked = 0; asked < 3; asked += 1) {
      vi.setSystemTime(Date.now() + 60_000);
      await changes();
    }
    // `clear` is the first step of a process.
    vi.spyOn(process, 'pid', 'get').mockReturnValue(process.ppid);
    onTestFinished(() => void vi.restoreAllMocks());
    await at.again().clear();
    expect(await views()).toEqual(kept);
  });

  test('a view is removed after 10 s without a request', async () => {
    await changes();
    const kept = await views();
    for (let asked = 0; asked < 3; asked += 1) {
      await vi.advanceTimersByTimeAsync(9_000);
      await changes();
      expect(await views()).toEqual(kept);
    }
    await vi.advanceTimersByTimeAsync(9_000);
    expect(await views()).toEqual(kept);
    await vi.advanceTimersByTimeAsync(1_000);
    vi.useRealTimers();
    await vi.waitFor(async () => expect(await views()).toEqual([]));
  });
});

/** Returns a function that lends views as requests get them. */
async function lending() {
  const root = await Folder.root(at.path);
  onTestFinished(() => root.close());
  const kept = new ViewFolderCache();
  return async (folder = at.views) => {
    const repository = await findRepository(root, at.path, new AbortController().signal);
    if (!repository) throw new Error('There is no repository');
    return kept.lend({ root, path: at.path, views: folder }, repository);
  };
}

test('a view is kept for as long as a request reads from it', async () => {
  const lend = await lending();
  settle();
  const before = await lend();
  await at.git('commit', '-q', '-m', 'third', '--allow-empty');
  settle();
  const [one, other] = [await lend(), await lend()];
  expect(other.path).toBe(one.path);
  expect((await views()).toSorted()).toEqual(
    [before, one].map((each) => path.basename(each.path)).toSorted(),
  );

  await before.release(true);
  await one.release(false);
  expect(await views()).toEqual([path.basename(other.path)]);
  await other.release(true);
  expect(await views()).toEqual([]);
});

test('a new view is removed if the previous one cannot be removed', async () => {
  const lend = await lending();
  settle();
  const before = await lend();
  await before.release(true);
  await rm(at.views, { recursive: true });
  await writeFile(at.views, 'in its way');
  await at.git('commit', '-q', '-m', 'third', '--allow-empty');
  settle();
  const others = path.join(at.around, 'others');
  await expect(lend(others)).rejects.toMatchObject({ code: 'ENOTDIR' });
  expect(await readdir(others)).toEqual([]);
});

test('a repository that has just changed leaves no view', async () => {
  expect(await changes()).toEqual([]);
  expect(await views()).toEqual([]);
});
