// @module-tag attack
import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import {
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { filesBelow } from '../../dev/files-below.js';
import { ServiceError } from '../../src/lib/errors.js';
import type { ReadFile, StoredFile } from '../../src/workspace/files/files.js';
import { Random } from '../support/random.js';
import { long, REFUSED } from './refused-paths.js';
import { testWorkspace, type TestWorkspace } from './support.js';

const SECRET = 'the secret of another user';

let at: TestWorkspace;
beforeEach(async () => {
  at = await testWorkspace();
  await writeFile(path.join(at.around, 'secret.txt'), SECRET);
  await mkdir(path.join(at.around, 'other'));
  await writeFile(path.join(at.around, 'other', 'secret.txt'), SECRET);
  await at.put('mine.txt', 'mine');
  await at.put('folder/deep.txt', 'deep');
  await at.put('.git/config', SECRET);
});
afterEach(() => at.close());

/** Odd paths that are nothing but names. */
const ODD_NAMES = [
  ...[
    '-rf',
    '--',
    '--upload-pack=touch x',
    '%2e%2e',
    '%2e%2e%2fsecret.txt',
    '..%2f',
    '..;',
    '....',
  ],
  ...[
    'a\nb',
    'a\r\nb',
    "it's",
    '"quoted"',
    '$(touch x)',
    '`touch x`',
    '; touch x',
    '| touch x',
    '*',
  ],
  ...[
    '?',
    '[a]',
    ':(top)',
    '!x',
    '#x',
    ' ',
    ' leading',
    'trailing ',
    '\u202egpj.exe',
    '…',
    '日本語',
    '👩‍🚀',
  ],
  ...['.gitignore', '.gitattributes', '.github', 'x.git', '\x01', '\x7f', 'NUL', 'con', long(255)],
  ...[
    'git',
    'git~',
    'git~x',
    '.git~1',
    'git~1x',
    '.gitx',
    'gi7d2~1',
    'x:.git',
    '.git\u200b',
    '. git',
  ],
  ...['é'.repeat(127), '‥', '．．', '．git', '%00', '~', '~root'],
];

test("a path that is not plain and relative is refused, and so is git's own folder", async () => {
  expect(new Set(REFUSED).size).toBeGreaterThanOrEqual(80);
  for (const given of REFUSED) {
    const asked = [() => at.workspace.read(given), () => at.workspace.write(given, 'mine')];
    for (const answer of asked) {
      await expect(answer(), JSON.stringify(given)).rejects.toMatchObject({ status: 400 });
    }
  }
  expect(await readFile(path.join(at.path, '.git/config'), 'utf8')).toBe(SECRET);
  expect((await readdir(at.around)).sort()).toEqual(['other', 'secret.txt', 'work']);
});

test('a path of 4,096 bytes is valid, and a missing file is a 404', async () => {
  const most = `${`${long(99)}/`.repeat(40)}${long(96)}`;
  expect(Buffer.byteLength(most)).toBe(4_096);
  await expect(at.workspace.read(most)).rejects.toMatchObject({ status: 404 });
  await expect(at.workspace.read(`${most}a`)).rejects.toMatchObject({ status: 400 });
});

test('any other name is written, read and listed unchanged', async () => {
  for (const name of ODD_NAMES) {
    await at.workspace.write(`odd/${name}`, name);
    expect((await at.workspace.read(`odd/${name}`)).content).toBe(name);
  }
  expect((await readdir(path.join(at.path, 'odd'))).sort()).toEqual([...ODD_NAMES].sort());
  const { children = [] } = await at.workspace.tree(2);
  const odd = children.find(({ name }) => name === 'odd');
  expect(odd?.children?.map(({ name }) => name).sort()).toEqual([...ODD_NAMES].sort());
});

test('paths of misleading pieces never read or write outside the workspace', async () => {
  const pieces = [
    ...['..', '.', '', '/', '\\', '~', '%2e%2e', '.git', 'a', 'work', 'secret.txt', 'other', 'out'],
    ...[
      'etc',
      'passwd',
      'proc',
      'self',
      'fd',
      '0',
      'root',
      'cwd',
      '\0',
      'C:',
      'mine.txt',
      'folder',
      'é',
    ],
  ];
  await symlink(at.around, path.join(at.path, 'out'));
  await symlink('/', path.join(at.path, 'root'));
  const draw = new Random(1);
  for (let each = 0; each < 800; each += 1) {
    const names = Array.from(
      { length: 1 + draw.below(5) },
      () => pieces[draw.below(pieces.length)],
    );
    const given = names.join(draw.below(8) === 0 ? '\\' : '/');
    const answer = await settled<ReadFile | StoredFile>(
      each % 2 === 0 ? at.workspace.read(given) : at.workspace.write(given, 'mine'),
    );
    expect([given, JSON.stringify(answer).includes(SECRET)]).toEqual([given, false]);
  }
  expect(await contentsOf(at.around, 'work')).toEqual({
    'other/secret.txt': SECRET,
    'secret.txt': SECRET,
  });
});

describe('entries other than plain files and folders', () => {
  const outside = (...names: string[]) => path.join(at.around, ...names);
  const inside = (...names: string[]) => path.join(at.path, ...names);

  test('links are neither followed nor listed', async () => {
    await symlink(outside('secret.txt'), inside('file'));
    await symlink(outside('other'), inside('folder', 'away'));
    await symlink('deep.txt', inside('folder', 'harmless'));
    await symlink('nowhere', inside('dangling'));
    await symlink('loop', inside('loop'));
    for (const given of ['file', 'folder/away/secret.txt', 'folder/harmless', 'dangling', 'loop']) {
      const asked = [() => at.workspace.read(given), () => at.workspace.write(given, 'mine')];
      for (const answer of asked) await expect(answer()).rejects.toMatchObject({ status: 400 });
    }
    expect(JSON.stringify(await at.workspace.tree(4))).not.toMatch(/away|harmless|dangling|loop/);
    expect(await contentsOf(at.around, 'work')).toEqual({
      'other/secret.txt': SECRET,
      'secret.txt': SECRET,
    });
  });

  test('a workspace whose scratch folder is a link writes nothing through it', async () => {
    await symlink(outside('other'), inside('.agent-platform-tmp'));
    await expect(at.workspace.write('new.txt', 'mine')).rejects.toMatchObject({ status: 400 });
    expect(await readdir(outside('other'))).toEqual(['secret.txt']);
  });

  test('pipes, sockets and folders do not block a request', { timeout: 60_000 }, async () => {
    await at.pipe('pipe');
    const socket = createServer();
    socket.listen(inside('socket'));
    await once(socket, 'listening');
    try {
      for (const given of ['pipe', 'pipe/below', 'socket', 'folder', 'mine.txt/below']) {
        const asked = [() => at.workspace.read(given), () => at.workspace.write(given, 'mine')];
        for (const answer of asked) await expect(answer()).rejects.toMatchObject({ status: 400 });
      }
      expect(JSON.stringify(await at.workspace.tree(1))).not.toMatch(/pipe|socket/);
    } finally {
      socket.close();
    }
  });

  test.runIf(process.getuid?.() === 0)('devices are neither read nor written', async () => {
    // The device /dev/zero, which never ends.
    await promisify(execFile)('mknod', [inside('device'), 'c', '1', '5']);
    await expect(at.workspace.read('device')).rejects.toMatchObject({ status: 400 });
    await expect(at.workspace.write('device', 'mine')).rejects.toMatchObject({ status: 400 });
    expect(JSON.stringify(await at.workspace.tree(1))).not.toContain('device');
  });

  test('a sparse file of 1 TB is refused by its size', async () => {
    await writeFile(inside('sparse'), '');
    await truncate(inside('sparse'), 2 ** 40);
    await expect(at.workspace.read('sparse')).rejects.toMatchObject({ status: 400 });
  });

  test('a name that is not UTF-8 is omitted from the tree without an error', async () => {
    await writeFile(Buffer.concat([Buffer.from(`${at.path}/`), Buffer.from([0xff, 0xfe])]), 'x');
    const { children } = await at.workspace.tree(1);
    expect(children?.map(({ name }) => name)).toEqual(['folder', 'mine.txt']);
  });

  test('a write leaves the second name of a hard link unchanged', async () => {
    await link(outside('secret.txt'), inside('linked.txt'));
    await at.workspace.write('linked.txt', 'mine');
    expect(await readFile(outside('secret.txt'), 'utf8')).toBe(SECRET);
  });
});

test('folders that become links during 5,000 reads and writes lead nowhere', async () => {
  const swapped = path.join(at.path, 'swapped');
  const [real, away] = [path.join(at.path, 'real'), path.join(at.path, 'away')];
  await mkdir(path.join(swapped, 'sub'), { recursive: true });
  await writeFile(path.join(swapped, 'secret.txt'), 'mine');
  await mkdir(path.join(at.around, 'other', 'sub'));
  await symlink(path.join(at.around, 'other'), away);
  let isOver = false;
  let swaps = 0;
  const swapping = (async () => {
    while (!isOver) {
      await rename(swapped, real);
      await moved(away, swapped);
      await rename(swapped, away);
      await moved(real, swapped);
      swaps += 1;
    }
  })();
  let done = 0;
  // Swaps and requests must both have run, or the test would prove nothing.
  const enough = () => swaps > 10 && done > 10;
  const work = async (worker: number) => {
    for (let each = 0; each < 625 || (each < 62_500 && !enough()); each += 1) {
      const answer = await settled<ReadFile | StoredFile>(
        each % 5 === 0
          ? at.workspace.write(`swapped/sub/${worker}.txt`, 'mine')
          : at.workspace.read('swapped/secret.txt'),
      );
      if ('content' in answer) expect(answer.content).toBe('mine');
      if (!('status' in answer)) done += 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, worker) => work(worker)));
  isOver = true;
  await swapping;
  expect({ swaps, done }).toSatisfy(enough);
  await rm(path.join(at.path, 'away'));
  expect(await contentsOf(at.around, 'work')).toEqual({
    'other/secret.txt': SECRET,
    'secret.txt': SECRET,
  });
});

/** Renames a folder, replacing a folder that a write has created at the target. */
async function moved(from: string, to: string): Promise<void> {
  for (;;) {
    try {
      return await rename(from, to);
    } catch {
      // A write may create something in the folder during its removal.
      await rm(to, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

/** Returns the answer or the status of a refusal; any other error fails the test. */
async function settled<T extends object>(asked: Promise<T>): Promise<T | { status: number }> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ServiceError && [400, 404].includes(error.status)) {
      return { status: error.status };
    }
    throw error;
  }
}

/** Returns the contents of the files below a folder, except one subfolder. */
async function contentsOf(folder: string, without: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await filesBelow(folder)) {
    const full = path.join(entry.parentPath, entry.name);
    const name = path.relative(folder, full);
    if (name.startsWith(`${without}/`) || !entry.isFile()) continue;
    found[name] = await readFile(full, 'utf8');
  }
  return found;
}
