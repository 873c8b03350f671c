import { execFile } from 'node:child_process';
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
  type FileHandle,
} from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { TreeNode } from '../../../src/workspace/files/tree.js';
import { Workspace } from '../../../src/workspace/workspace.js';
import { testWorkspace, type TestWorkspace } from '../support.js';

let at: TestWorkspace;
beforeEach(async () => {
  at = await testWorkspace();
});
afterEach(() => at.close());

const MB = 1_048_576;

describe('reading a file', () => {
  test('returns text unchanged, with its size in bytes and its time', async () => {
    await at.put('notes/ünïcödé.md', 'größe\r\n');
    const { modified, ...read } = await at.workspace.read('notes/ünïcödé.md');
    expect(read).toEqual({ path: 'notes/ünïcödé.md', content: 'größe\r\n', size: 9 });
    expect(
      Math.abs(Date.parse(modified) - (await stat(path.join(at.path, 'notes/ünïcödé.md'))).mtimeMs),
    ).toBeLessThan(2);
  });

  test.each([9e12, -9e12])(
    'returns a time within four digits for the second %d',
    async (second) => {
      // A file system that accepts any time.
      const path = await mkdtemp('/dev/shm/aps-times-');
      onTestFinished(() => rm(path, { recursive: true }));
      await writeFile(`${path}/file`, '');
      await promisify(execFile)('touch', ['-d', `@${second}`, `${path}/file`]);
      const workspace = new Workspace({ path, views: at.views });
      const { modified } = await workspace.read('file');
      expect(modified).toBe(second > 0 ? '9999-12-31T23:59:59.999Z' : '0000-01-01T00:00:00.000Z');
    },
  );

  test.each([
    ['bytes that are not UTF-8', Buffer.from([0xff, 0xd8, 0xff])],
    ['text with a NUL', Buffer.from('a\0b')],
    ['UTF-16', Buffer.from('\ufefftext', 'utf16le')],
  ])('returns %s in base64', async (_, bytes) => {
    await at.put('picture', bytes);
    expect(await at.workspace.read('picture')).toMatchObject({
      content: bytes.toString('base64'),
      encoding: 'base64',
      size: bytes.length,
    });
  });

  test('keeps a byte order mark as content', async () => {
    await at.put('bom', '\ufefftext');
    expect((await at.workspace.read('bom')).content).toBe('\ufefftext');
  });

  test('reads a file of 1 MB and refuses a larger one', async () => {
    await at.put('most', Buffer.alloc(MB, 'a'));
    expect((await at.workspace.read('most')).size).toBe(MB);
    await at.put('more', Buffer.alloc(MB + 1, 'a'));
    await expect(at.workspace.read('more')).rejects.toMatchObject({ status: 400 });
  });

  test('cuts a file at 1 MB that grows while it is read', async () => {
    const file = path.join(at.path, 'grows');
    await writeFile(file, 'a');
    const handle = await open(file);
    const handles = Object.getPrototypeOf(handle) as Pick<FileHandle, 'stat'>; // the prototype of all file handles
    await handle.close();
    const { stat: check } = handles;
    vi.spyOn(handles, 'stat').mockImplementationOnce(async function (this: FileHandle) {
      const stats = await check.call(this);
      await appendFile(file, Buffer.alloc(2 * MB, 'b'));
      return stats;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    expect((await at.workspace.read('grows')).size).toBe(MB);
  });

  test('returns an empty file as empty and a missing one as 404', async () => {
    await at.put('empty', '');
    expect(await at.workspace.read('empty')).toMatchObject({ content: '', size: 0 });
    await expect(at.workspace.read('missing')).rejects.toMatchObject({ status: 404 });
    await expect(at.workspace.read('missing/below')).rejects.toMatchObject({ status: 404 });
  });
});

test('a workspace that could not be opened is opened by the next request', async () => {
  await at.put('a.txt', 'a');
  await rename(at.path, `${at.path}-away`);
  await writeFile(at.path, 'in its way');
  await expect(at.workspace.read('a.txt')).rejects.toMatchObject({ status: 500 });
  await rm(at.path);
  await rename(`${at.path}-away`, at.path);
  expect((await at.workspace.read('a.txt')).content).toBe('a');
});

describe('writing a file', () => {
  test('creates missing folders, replaces an existing file and leaves nothing else behind', async () => {
    expect(await at.workspace.write('a/b/c.txt', 'größe')).toMatchObject({
      path: 'a/b/c.txt',
      size: 7,
    });
    await at.workspace.write('a/b/c.txt', 'short');
    expect(await readFile(path.join(at.path, 'a/b/c.txt'), 'utf8')).toBe('short');
    expect(await readdir(at.path)).toEqual(['a']);
    expect(await readdir(path.join(at.path, 'a/b'))).toEqual(['c.txt']);
  });

  test('creates a new file with mode 0644 and keeps the mode of an existing one', async () => {
    await at.workspace.write('new', '');
    const program = path.join(at.path, 'program');
    await writeFile(program, 'old');
    await chmod(program, 0o777); // more bits than the umask would leave
    await at.workspace.write('program', 'new');
    const modes = [(await stat(path.join(at.path, 'new'))).mode, (await stat(program)).mode];
    expect(modes.map((mode) => mode & 0o7777)).toEqual([0o644, 0o777]);
  });

  test('writes a file of 1 MB and refuses a larger one', async () => {
    expect(await at.workspace.write('most', 'é'.repeat(MB / 2))).toMatchObject({ size: MB });
    const more = at.workspace.write('more', 'é'.repeat(MB / 2 + 1));
    await expect(more).rejects.toMatchObject({ status: 400 });
    await expect(at.workspace.write('half', '\ud800')).rejects.toMatchObject({ status: 400 });
  });

  test('flushes a file to disk before giving it its name', async () => {
    const handle = await open(at.path);
    const handles = Object.getPrototypeOf(handle) as Pick<FileHandle, 'datasync'>; // the prototype of all file handles
    await handle.close();
    const there: (readonly string[])[] = [];
    vi.spyOn(handles, 'datasync').mockImplementation(async () => {
      there.push(await readdir(at.path));
    });
    onTestFinished(() => void vi.restoreAllMocks());
    await at.workspace.write('new.txt', 'new');
    expect(there).toEqual([['.agent-platform-tmp']]);
  });

  test('keeps each of many concurrent writes complete', async () => {
    const texts = Array.from({ length: 40 }, (_, each) => String(each).repeat(20_000));
    await Promise.all(texts.map((text) => at.workspace.write('one.txt', text)));
    expect(texts).toContain((await at.workspace.read('one.txt')).content);
    expect(await readdir(at.path)).toEqual(['one.txt']);
  });

  test('a killed write leaves the old file or the new one, and no fragment after the next start', async () => {
    const [a, b] = ['a'.repeat(MB), 'b'.repeat(MB)];
    await at.put('file', a);
    const left = path.join(at.path, '.agent-platform-tmp');
    // Leftovers of a process that was killed between two steps.
    await mkdir(left);
    await writeFile(path.join(left, '0123456789abcdef01234567'), b.slice(0, 1_000));
    await writeFile(path.join(left, 'of-somebody-else'), 'kept');
    const next = at.again();
    expect((await next.read('file')).content).toBe(a);
    expect(await readdir(left)).toEqual(['of-somebody-else']);
  });
});

describe('the tree', () => {
  const names = (node: TreeNode | undefined) => node?.children?.map(({ name }) => name);
  const at2 = (node: TreeNode, name: string) => node.children?.find((each) => each.name === name);

  test('the tree lists folders first, sorted by name, with paths relative to the workspace', async () => {
    for (const file of ['b.txt', 'A.txt', 'z/one', 'Y/two', 'é.txt', 'c/d/e/f/g']) {
      await at.put(file, '');
    }
    const tree = await at.workspace.tree(3);
    expect(tree).toMatchObject({ type: 'folder', name: 'workspace', path: '' });
    expect(names(tree)).toEqual(['c', 'Y', 'z', 'A.txt', 'b.txt', 'é.txt']);
    expect(at2(tree, 'z')).toEqual({
      type: 'folder',
      name: 'z',
      path: 'z',
      children: [{ type: 'file', name: 'one', path: 'z/one' }],
    });
    const third = at2(at2(at2(tree, 'c')!, 'd')!, 'e');
    expect(third).toEqual({ type: 'folder', name: 'e', path: 'c/d/e' });
  });

  test('the tree has at least one level and at most four', async () => {
    await at.put('1/2/3/4/5', '');
    const deepest = JSON.stringify(await at.workspace.tree(100));
    expect(deepest).toContain('"1/2/3/4"');
    expect(deepest).not.toContain('1/2/3/4/5');
    for (const depth of [0, -1, 1.5, Number.NaN]) {
      await expect(at.workspace.tree(depth)).rejects.toMatchObject({ status: 400 });
    }
  });

  test('the tree omits folders of builds and dependencies, but not files with these names', async () => {
    const excluded = ['node_modules', '.git', '.next', 'dist', 'build', '.cache', '__pycache__'];
    for (const folder of [...excluded, '.agent-platform-tmp']) await at.put(`${folder}/x`, '');
    for (const file of excluded) await at.put(`files/${file}`, '');
    const tree = await at.workspace.tree(2);
    expect(names(tree)).toEqual(['files']);
    expect(names(at2(tree, 'files'))?.sort()).toEqual([...excluded].sort());
  });

  test('the tree marks its cuts and cuts the deepest level first', async () => {
    await at.put('top.txt', '');
    await mkdir(path.join(at.path, 'many'));
    const all = Array.from({ length: 10_050 }, (_, each) => each);
    for (let from = 0; from < all.length; from += 500) {
      const part = all.slice(from, from + 500);
      await Promise.all(part.map((each) => writeFile(path.join(at.path, 'many', `${each}`), '')));
    }
    const tree = await at.workspace.tree(3);
    expect(names(tree)).toEqual(['many', 'top.txt']);
    expect(tree.truncated).toBeUndefined();
    expect(at2(tree, 'many')).toMatchObject({ truncated: true });
    expect(at2(tree, 'many')?.children).toHaveLength(9_998);
  });

  test(
    'the tree is cut if long names would make an answer of many megabytes',
    { tags: 'attack' },
    async () => {
      // A character that JSON escapes with six bytes.
      const long = '\u0001'.repeat(250);
      await mkdir(path.join(at.path, long));
      const all = Array.from({ length: 1_200 }, (_, each) => `${long}/${long}${each}`);
      await Promise.all(all.map((name) => writeFile(path.join(at.path, name), '')));
      const tree = await at.workspace.tree(3);
      const bytes = Buffer.byteLength(JSON.stringify(tree));
      expect([bytes <= 4 * 1024 * 1024, bytes > 4_000_000]).toEqual([true, true]);
      expect(tree.truncated).toBeUndefined();
      expect(tree.children).toMatchObject([{ truncated: true }]);
    },
  );

  test('the tree stops when its request is aborted', async () => {
    await at.put('a/b', '');
    await expect(at.workspace.tree(3, AbortSignal.abort())).rejects.toThrow();
  });
});

test('an aborted write changes nothing and leaves nothing behind', async () => {
  await at.put('a.txt', 'newer');
  await expect(
    at.workspace.write('a.txt', 'older', { signal: AbortSignal.abort() }),
  ).rejects.toThrow();
  expect((await at.workspace.read('a.txt')).content).toBe('newer');
  const { children = [] } = await at.workspace.tree(1);
  expect(children.map(({ name }) => name)).toEqual(['a.txt']);
});
