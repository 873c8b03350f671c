import { appendFile, chmod, cp, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { plainGit, testWorkspace, type TestWorkspace } from './support.js';

let at: TestWorkspace;
beforeEach(async () => {
  at = await testWorkspace();
  await at.git('init');
});
afterEach(() => at.close());

const CHECKED_OUT = ['lf.txt', 'crlf.txt', 'mixed.txt', 'binary', 'run.sh', 'link'];

/** Commits files of all kinds with git's defaults, then checks them out with other settings. */
async function checkOutWith(settings: string, attributes?: string): Promise<void> {
  await at.put('lf.txt', 'one\ntwo\n');
  await at.put('crlf.txt', 'one\r\ntwo\r\n');
  await at.put('mixed.txt', 'one\r\ntwo\n');
  await at.put('binary', 'one\r\n\0\n');
  await at.put('run.sh', '#!/bin/sh\n');
  await chmod(path.join(at.path, 'run.sh'), 0o755);
  await symlink('lf.txt', path.join(at.path, 'link'));
  await at.git('add', '-A');
  await at.git('commit', '-q', '-m', 'first');
  await appendFile(path.join(at.path, '.git/config'), `[core]\n${settings}\n`);
  if (attributes !== undefined) await at.put('.git/info/attributes', attributes);
  for (const name of CHECKED_OUT) await rm(path.join(at.path, name));
  await at.git('checkout', '-q', '--', '.');
}

async function changeAll(): Promise<void> {
  for (const name of ['lf.txt', 'crlf.txt', 'mixed.txt', 'binary']) {
    await appendFile(path.join(at.path, name), 'three\r\n');
  }
  await at.put('new.txt', 'one\r\ntwo\r\n');
  await at.put('new-mixed.txt', 'one\r\ntwo\n');
  await at.put('new.sh', '#!/bin/sh\r\n');
  await chmod(path.join(at.path, 'new.sh'), 0o755);
  await chmod(path.join(at.path, 'run.sh'), 0o644);
}

/** Returns the tree that plain git would commit, from a copy of the workspace. */
async function treeOfGit(): Promise<string> {
  const twin = path.join(at.around, 'twin');
  await cp(at.path, twin, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  await plainGit(twin, 'add', '-A');
  return plainGit(twin, 'write-tree');
}

test.each<[settings: string, attributes?: string]>([
  ['autocrlf = true'],
  ['autocrlf'],
  ['AutoCRLF = INPUT'],
  ['autocrlf = 1k'],
  ['autocrlf = true\nautocrlf ='],
  ['autocrlf = off'],
  ['autocrlf = true\neol = lf'],
  ['autocrlf = input\neol = crlf'],
  ['eol = crlf', '* text=auto\n'],
  ['eol = CRLF', '*.txt text\n'],
  ['eol = crlf\neol = other', '* text=auto\n'],
  ['', '*.txt eol=crlf\n'],
  ['fileMode = false'],
  ['filemode = No\nautocrlf = true'],
  ['symlinks = false'],
])(
  'a checkout is clean, and a sync commits what git would commit: %j %j',
  async (settings, attributes) => {
    await checkOutWith(settings, attributes);
    const changes = async () => {
      const status = await at.workspace.gitStatus();
      return status.isGitRepo ? status.changes.map((each) => `${each.status} ${each.path}`) : [];
    };
    const ofGit = async () => {
      const status = await at.git('--no-optional-locks', 'status', '--porcelain');
      return status.split('\n').flatMap((line) => (line === '' ? [] : [line.trim()]));
    };
    expect(await changes()).toEqual(await ofGit());
    expect((await at.workspace.gitDiff()).unstaged ?? '').toBe(await at.git('diff'));

    await changeAll();
    const tree = await treeOfGit();
    expect(await changes()).toEqual(await ofGit());
    await at.workspace.gitSync();
    expect(await at.git('rev-parse', 'HEAD^{tree}')).toBe(tree);
    expect(await at.git('status', '--porcelain')).toBe('');
  },
);

test('a checkout with autocrlf has no changes', async () => {
  await checkOutWith('autocrlf = true\nfileMode = false');
  await chmod(path.join(at.path, 'run.sh'), 0o644);
  expect(await at.workspace.gitStatus()).toMatchObject({ changes: [], hasChanges: false });
  expect(await at.workspace.gitSync()).toMatchObject({ committed: false });
});

test('a repository with relative worktrees, as git has them since 2.48, is read', async () => {
  await checkOutWith('');
  const settings = '[core]\nrepositoryFormatVersion = 1\n[extensions]\nrelativeWorktrees\n';
  await appendFile(path.join(at.path, '.git/config'), settings);
  expect(await at.workspace.gitStatus()).toMatchObject({ isGitRepo: true, changes: [] });
});

test('a line end setting that git does not have is ignored', async () => {
  await checkOutWith('');
  await appendFile(path.join(at.path, '.git/config'), '[core]\nautocrlf = "x\\n[alias]"\n');
  expect(await at.workspace.gitStatus()).toMatchObject({ changes: [] });
});
