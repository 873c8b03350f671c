import { createHash } from 'node:crypto';
import { appendFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Folder } from '../../src/workspace/files/folder.js';
import { ViewFolderCache } from '../../src/workspace/git/kept-folder.js';
import { findRepository } from '../../src/workspace/git/repository.js';
import { testWorkspace, type TestWorkspace } from './support.js';

/** Makes what was written be no longer something that has just changed, however long that took. */
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

describe('a repository that is as it was', () => {
  beforeEach(settle);

  test('is read by what the request before has made, also by several at a time', async () => {
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
    ['a commit', () => at.git('commit', '-q', '--allow-empty', '-m', 'b'), ['?? new.txt']],
    [
      'an end of history',
      async () => at.put('.git/shallow', await at.git('rev-parse', 'HEAD')),
      ['?? new.txt'],
    ],
    ['a branch', () => at.git('checkout', '-q', '-b', 'other'), ['?? new.txt']],
  ])('is read anew with %s that is another one, at once', async (_, change, expected) => {
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

  test('is read anew once something went wrong with what was made', async () => {
    await changes();
    const [kept = ''] = await views();
    await rm(path.join(at.views, kept, 'HEAD'));
    await expect(changes()).rejects.toMatchObject({ status: 500 });
    expect(await views()).toEqual([]);
    expect(await changes()).toEqual([]);
  });

  test('is read anew each time where its index is large', async () => {
    const index = path.join(at.path, '.git/index');
    const body = (await readFile(index)).subarray(0, -20);
    // A part that git passes over, because it does not know it.
    const [name, length] = [Buffer.from('XLEN'), Buffer.alloc(4)];
    length.writeUInt32BE(4 * 1024 * 1024);
    const large = Buffer.concat([body, name, length, Buffer.alloc(4 * 1024 * 1024)]);
    const sum = createHash('sha1').update(large).digest();
    await writeFile(index, Buffer.concat([large, sum]));
    settle();
    expect(await changes()).toEqual([]);
    expect(await views()).toEqual([]);
  });

  test('is committed in a folder of the commit’s own', async () => {
    await changes();
    const kept = await views();
    await at.put('new.txt', 'two\n');
    expect(await at.workspace.gitSync()).toMatchObject({ committed: true });
    expect(await views()).toEqual(kept);
    expect(await changes()).toEqual([]);
  });

  test('is read anew when somebody has removed what was made', async () => {
    await changes();
    const [kept = ''] = await views();
    await rm(path.join(at.views, kept), { recursive: true });
    expect(await changes()).toEqual([]);
    expect(await views()).not.toEqual([kept]);
  });

  test('is read by what is left by a process that begins beside this one, however old it is', async () => {
    await changes();
    const kept = await views();
    for (let asked = 0; asked < 3; asked += 1) {
      vi.setSystemTime(Date.now() + 60_000);
      await changes();
    }
    // It begins with that.
    vi.spyOn(process, 'pid', 'get').mockReturnValue(process.ppid);
    onTestFinished(() => void vi.restoreAllMocks());
    await at.again().clear();
    expect(await views()).toEqual(kept);
  });

  test('has nothing left once nobody has asked for a while', async () => {
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

/** Gives folders as requests get them. */
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

test('what was made is there for as long as somebody reads by it', async () => {
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

test('what was made is not left when the one before cannot be removed', async () => {
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

test('a repository that has just changed leaves nothing', async () => {
  expect(await changes()).toEqual([]);
  expect(await views()).toEqual([]);
});
