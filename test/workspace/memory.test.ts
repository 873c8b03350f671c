import { createHash } from 'node:crypto';
import { appendFile, link, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readMemory } from '../../src/agents/memory/runtime-memory.js';
import { BadRequestError } from '../../src/lib/errors.js';
import { segmentsOf } from '../../src/workspace/files/segments.js';
import { checkMemoryPath } from '../../src/workspace/memory/memory-paths.js';
import { REFUSED } from './refused-paths.js';
import { testWorkspace, type TestWorkspace } from './support.js';

const SECRET = 'the secret of another user';
const MB = 1_048_576;

let at: TestWorkspace;
beforeEach(async () => {
  at = await testWorkspace();
});
afterEach(() => at.close());

const etagOf = (content: string) => createHash('sha256').update(content).digest('base64url');
const contentOf = (file: string) => readFile(path.join(at.path, file), 'utf8');

describe('paths of the memory', () => {
  test('the files of the runtime are the memory', () => {
    const mine = ['MEMORY.md', 'USER.md', 'SOUL.md', 'memory/2026-11-28.md', 'memory/a/b/größe.md'];
    for (const each of mine) expect(() => checkMemoryPath(each)).not.toThrow();
  });

  test.each([
    ...['openclaw.json', 'AGENTS.md', 'memory', 'memory.md', 'memory/a.txt', 'memory/a.md/b'],
    ...['memory.md/a.md', 'notes/memory/a.md', 'notes/MEMORY.md', 'memory.md', 'Memory/a.md'],
    ...['MEMORY.MD', 'memory/a.MD'],
  ])('refuses %s', (other) => {
    expect(() => checkMemoryPath(other)).toThrow('path must be MEMORY.md');
  });

  test('refuses every path that the explorer refuses', { tags: 'attack' }, async () => {
    await writeFile(path.join(at.around, 'secret.txt'), SECRET);
    await writeFile(path.join(at.around, 'secret.md'), SECRET);
    const through = ['memory/../../secret.md', '../secret.md', 'memory/../MEMORY.md'];
    const below = REFUSED.flatMap((each) => [`memory/${each}`, `memory/${each}/a.md`]);
    const refused = [...REFUSED, ...through, ...below].filter(isRefused);
    expect(new Set(refused).size).toBeGreaterThan(250);
    for (const given of refused) {
      expect(() => checkMemoryPath(given), JSON.stringify(given)).toThrow(BadRequestError);
      await expect(readMemory(at.workspace, given)).rejects.toMatchObject({ status: 400 });
    }
  });

  test('links are neither read, changed, listed nor searched', { tags: 'attack' }, async () => {
    await writeFile(path.join(at.around, 'secret.md'), SECRET);
    await mkdir(path.join(at.around, 'other'));
    await writeFile(path.join(at.around, 'other', 'deep.md'), SECRET);
    await at.put('memory/mine.md', 'mine');
    await symlink(path.join(at.around, 'secret.md'), path.join(at.path, 'memory/link.md'));
    await symlink(path.join(at.around, 'secret.md'), path.join(at.path, 'MEMORY.md'));
    await symlink(path.join(at.around, 'other'), path.join(at.path, 'memory/other'));
    await symlink(path.join(at.around, 'made.md'), path.join(at.path, 'memory/dangling.md'));
    await at.pipe('memory/pipe.md');
    const paths = ['link', 'other/deep', 'dangling', 'pipe', 'mine.md/x'];
    for (const name of [...paths.map((each) => `memory/${each}.md`), 'MEMORY.md']) {
      await expect(readMemory(at.workspace, name)).rejects.toMatchObject({ status: 400 });
      await expect(at.workspace.append(name, 'x')).rejects.toMatchObject({ status: 400 });
      await expect(at.workspace.write(name, 'x')).rejects.toMatchObject({ status: 400 });
    }
    const { files } = await at.workspace.memoryFiles();
    expect(files.map((file) => file.path)).toEqual(['memory/mine.md']);
    expect(await at.workspace.findInMemory('secret')).toEqual([]);
    await expect(stat(path.join(at.around, 'made.md'))).rejects.toThrow('ENOENT');
    expect(await readFile(path.join(at.around, 'secret.md'), 'utf8')).toBe(SECRET);
  });
});

/** Reports whether the explorer refuses a path; some that it refuses are plain names below a folder. */
const isRefused = (given: string) => {
  try {
    segmentsOf(given);
    return false;
  } catch {
    return true;
  }
};

describe('appending', () => {
  test('creates a missing file and its folders, and keeps existing content', async () => {
    const first = await at.workspace.append('memory/a/day.md', 'größe\n');
    expect(first).toMatchObject({
      path: 'memory/a/day.md',
      size: 8,
      etag: etagOf('größe\n'),
    });
    expect(Date.parse(first.modified)).toBeLessThanOrEqual(Date.now());
    const second = await at.workspace.append('memory/a/day.md', 'two');
    expect(second).toMatchObject({ size: 11, etag: etagOf('größe\ntwo') });
    expect(await contentOf('memory/a/day.md')).toBe('größe\ntwo');
    expect((await stat(path.join(at.path, 'memory/a/day.md'))).mode & 0o777).toBe(0o644);
  });

  test('loses neither lines of the agent nor of other requests at the same time', async () => {
    const file = path.join(at.path, 'memory/day.md');
    await at.put('memory/day.md', '');
    const lines = Array.from({ length: 200 }, (_, each) => `line ${each} ${'x'.repeat(500)}\n`);
    await Promise.all(
      lines.map((line, each) =>
        each % 2 === 0 ? at.workspace.append('memory/day.md', line) : appendFile(file, line),
      ),
    );
    expect((await contentOf('memory/day.md')).split('\n').sort()).toEqual(
      ['', ...lines.map((line) => line.trim())].sort(),
    );
  });

  test('writes into the file itself, which the agent may have open', async () => {
    await at.put('memory/day.md', 'one');
    await link(path.join(at.path, 'memory/day.md'), path.join(at.path, 'open.md'));
    await at.workspace.append('memory/day.md', ' two');
    expect(await contentOf('open.md')).toBe('one two');
  });

  test('refuses a file over 1 MiB, ill-formed text and an aborted request', async () => {
    await at.put('MEMORY.md', Buffer.alloc(MB - 2, 'a'));
    await expect(at.workspace.append('MEMORY.md', 'abc')).rejects.toMatchObject({ status: 400 });
    await expect(at.workspace.append('MEMORY.md', '\ud800')).rejects.toMatchObject({ status: 400 });
    const signal = AbortSignal.abort(new Error('left'));
    await expect(at.workspace.append('MEMORY.md', 'a', { signal })).rejects.toThrow('left');
    expect((await stat(path.join(at.path, 'MEMORY.md'))).size).toBe(MB - 2);
    expect(await at.workspace.append('MEMORY.md', 'ab')).toMatchObject({ size: MB });
  });
});

describe('etags', () => {
  test('a change with an etag needs the file to have that content', async () => {
    const { etag } = await at.workspace.append('MEMORY.md', 'one');
    expect((await readMemory(at.workspace, 'MEMORY.md')).etag).toBe(etag);
    for (const change of ['write', 'append'] as const) {
      await expect(
        at.workspace[change]('MEMORY.md', 'two', { etag: etagOf('another') }),
      ).rejects.toMatchObject({ status: 409, code: 'FILE_CHANGED' });
      await expect(
        at.workspace[change]('memory/missing/day.md', 'two', { etag }),
      ).rejects.toMatchObject({ status: 409, code: 'FILE_CHANGED' });
    }
    await expect(stat(path.join(at.path, 'memory'))).rejects.toThrow('ENOENT');
    expect(await contentOf('MEMORY.md')).toBe('one');
    const replaced = await at.workspace.write('MEMORY.md', 'two', { etag });
    expect(replaced.etag).toBe(etagOf('two'));
    await at.workspace.append('MEMORY.md', '!', { etag: replaced.etag });
    expect(await contentOf('MEMORY.md')).toBe('two!');
  });

  test('exactly one of 50 replacements of the same content succeeds', async () => {
    const { etag } = await at.workspace.append('MEMORY.md', 'one');
    const all = Array.from({ length: 50 }, (_, each) =>
      at.workspace.write('MEMORY.md', `two ${each}`, { etag }),
    );
    const done = (await Promise.allSettled(all)).filter(({ status }) => status === 'fulfilled');
    expect(done).toHaveLength(1);
  });

  test('appends and replacements of one file run one after the other', async () => {
    const { etag } = await at.workspace.append('MEMORY.md', 'one');
    const [replaced] = await Promise.allSettled([
      at.workspace.write('MEMORY.md', 'two', { etag }),
      at.workspace.append('MEMORY.md', '+'),
    ]);
    expect(replaced.status).toBe('fulfilled');
    expect(await contentOf('MEMORY.md')).toBe('two+');
  });

  test('an etag is of the bytes, also of a file that is no text', async () => {
    const bytes = Buffer.from([0xff, 0xfe]);
    await at.put('memory/day.md', bytes);
    expect(await readMemory(at.workspace, 'memory/day.md')).toMatchObject({
      content: bytes.toString('base64'),
      encoding: 'base64',
      etag: createHash('sha256').update(bytes).digest('base64url'),
    });
  });
});

describe('listing', () => {
  test('lists the files beside the folder first, then those of the folder, newest day first', async () => {
    await at.put('SOUL.md', 'soul');
    await at.put('MEMORY.md', '');
    await at.put('other.md', 'no memory');
    await at.put('memory/notes.txt', 'no memory');
    await at.put('memory/2026-11-27.md', 'a');
    await at.put('memory/2026-11-28.md', 'b');
    await at.put('memory/below/deep.md', 'c');
    const { files, truncated } = await at.workspace.memoryFiles();
    expect(files.map((file) => file.path)).toEqual([
      'MEMORY.md',
      'SOUL.md',
      'memory/below/deep.md',
      'memory/2026-11-28.md',
      'memory/2026-11-27.md',
    ]);
    expect(truncated).toBeUndefined();
    expect(files[1]).toMatchObject({ size: 4, etag: etagOf('soul') });
    expect(Date.parse(files[1]?.modified ?? '')).toBeLessThanOrEqual(Date.now());
  });

  test('lists nothing in an empty workspace', async () => {
    expect(await at.workspace.memoryFiles()).toEqual({ files: [] });
  });

  test('lists a file over 1 MiB without an etag', async () => {
    await at.put('memory/large.md', Buffer.alloc(MB + 1, 'a'));
    const { files } = await at.workspace.memoryFiles();
    expect(files).toMatchObject([{ path: 'memory/large.md', size: MB + 1, etag: null }]);
  });

  test('lists 1,000 files and reports that some are missing', { tags: 'attack' }, async () => {
    await mkdir(path.join(at.path, 'memory'));
    const names = Array.from({ length: 1_001 }, (_, each) => `${String(each).padStart(4, '0')}.md`);
    await Promise.all(names.map((name) => writeFile(path.join(at.path, 'memory', name), name)));
    const { files, truncated } = await at.workspace.memoryFiles();
    expect([files.length, files[0]?.path, truncated]).toEqual([1_000, 'memory/1000.md', true]);
  });

  test(
    'follows folders for 16 levels and reports that some are missing',
    { tags: 'attack' },
    async () => {
      const deep = (levels: number) => `memory/${'a/'.repeat(levels)}day.md`;
      await at.put(deep(15), 'found');
      await at.put(deep(16), 'too deep');
      const { files, truncated } = await at.workspace.memoryFiles();
      expect([files.map((file) => file.path), truncated]).toEqual([[deep(15)], true]);
    },
  );
});

describe('searching', () => {
  test('finds lines in any case, with their numbers', async () => {
    await at.put('MEMORY.md', 'likes Tea\r\nnothing\nno COFFEE\n');
    await at.put('memory/day.md', 'coffee at noon');
    await at.put('AGENTS.md', 'coffee elsewhere');
    expect(await at.workspace.findInMemory('Coffee')).toEqual([
      { path: 'MEMORY.md', line: 3, text: 'no COFFEE' },
      { path: 'memory/day.md', line: 1, text: 'coffee at noon' },
    ]);
    expect(await at.workspace.findInMemory('likes tea')).toEqual([
      { path: 'MEMORY.md', line: 1, text: 'likes Tea' },
    ]);
  });

  test('finds the literal text, not a pattern', async () => {
    await at.put('MEMORY.md', 'price (a.b)*\nprice axb');
    expect(await at.workspace.findInMemory('(a.b)*')).toMatchObject([{ line: 1 }]);
  });

  test('returns 50 matches, and 500 characters around a match', { tags: 'attack' }, async () => {
    await at.put('MEMORY.md', 'found\n'.repeat(100));
    expect(await at.workspace.findInMemory('found')).toHaveLength(50);
    await at.put('MEMORY.md', `${'a'.repeat(10_000)}found${'b'.repeat(10_000)}`);
    const [match] = await at.workspace.findInMemory('found');
    expect(match?.text).toBe(`${'a'.repeat(100)}found${'b'.repeat(395)}`);
  });

  test('skips files that are not text or too large', async () => {
    await at.put('MEMORY.md', Buffer.from('found\0'));
    await at.put('memory/large.md', `found${'a'.repeat(MB)}`);
    await at.put('memory/odd.md', Buffer.from([0xff, ...Buffer.from('found')]));
    expect(await at.workspace.findInMemory('found')).toEqual([]);
  });

  test('a listing and a search end with their request', async () => {
    await at.put('MEMORY.md', 'found');
    const signal = AbortSignal.abort(new Error('left'));
    await expect(at.workspace.memoryFiles(signal)).rejects.toThrow('left');
    await expect(at.workspace.findInMemory('found', signal)).rejects.toThrow('left');
  });
});
