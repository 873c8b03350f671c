// @module-tag attack
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import {
  chmod,
  cp,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { filesBelow } from '../../dev/files-below.js';
import { ServiceError } from '../../src/lib/errors.js';
import { Folder } from '../../src/workspace/files/folder.js';
import { checkObjects } from '../../src/workspace/git/objects.js';
import { plainGit, testWorkspace, type TestWorkspace } from './support.js';

const SECRET = 'the secret of another folder';

let template: TestWorkspace;
let at: TestWorkspace;
let markers: string;
let traps: string;
beforeAll(async () => {
  template = await testWorkspace();
  await template.git('init', '-q');
  await template.put('file.txt', 'one\n');
  await template.put('both.bin', 'one\n');
  await template.git('add', '-A');
  await template.git('commit', '-q', '-m', 'first');
});
afterAll(() => template?.close());
beforeEach(async () => {
  at = await testWorkspace();
  markers = path.join(at.around, 'markers');
  traps = path.join(at.around, 'traps');
  await mkdir(markers);
  await mkdir(traps);
  await cp(template.path, at.path, { recursive: true });
});
afterEach(() => at.close());

/** Creates a program that leaves a marker file when it runs. */
async function trap(name: string): Promise<string> {
  const file = path.join(traps, name);
  await writeFile(file, `#!/bin/sh\n: > "${markers}/${name}"\n`);
  await chmod(file, 0o755);
  return file;
}

/** Runs every git request of the explorer, ignoring failures, and returns the results as text. */
async function askAll(): Promise<string> {
  const { workspace } = at;
  const answers = [
    () => workspace.gitStatus(),
    () => workspace.gitDiff(),
    () => workspace.gitLog(20),
    () => workspace.gitSync('by the explorer'),
  ];
  const reported: unknown[] = [];
  for (const ask of answers) {
    try {
      reported.push(await ask());
    } catch (error) {
      // Every failure must be a ServiceError that describes the problem.
      if (!(error instanceof ServiceError)) throw error;
      reported.push([error.status, error.message, error.facts]);
    }
  }
  return JSON.stringify(reported);
}

const HOOKS = [
  ...['pre-commit', 'prepare-commit-msg', 'commit-msg', 'post-commit', 'post-index-change'],
  ...['reference-transaction', 'pre-push', 'post-checkout', 'fsmonitor-watchman', 'pre-auto-gc'],
  ...['post-rewrite', 'pre-merge-commit', 'post-merge', 'pre-rebase', 'push-to-checkout'],
];

/** Configuration keys that each name a program. */
const PROGRAMS = [
  ...['core.fsmonitor', 'core.sshCommand', 'core.gitProxy', 'core.askPass', 'core.editor'],
  ...['core.pager', 'pager.log', 'pager.diff', 'pager.status', 'core.alternateRefsCommand'],
  ...['sequence.editor', 'diff.external', 'diff.trap.command', 'diff.trap.textconv'],
  ...['filter.trap.clean', 'filter.trap.smudge', 'filter.late.process', 'merge.trap.driver'],
  ...['credential.helper', 'gpg.program', 'gpg.ssh.program', 'gpg.x509.program', 'web.browser'],
  ...['interactive.diffFilter', 'trailer.x.command', 'uploadpack.packObjectsHook'],
  ...['gc.recentObjectsHook', 'remote.origin.uploadpack', 'remote.origin.receivepack'],
  ...['ssh.variant', 'difftool.x.cmd', 'mergetool.x.cmd', 'hook.x.command', 'browser.x.cmd'],
  ...['imap.tunnel', 'sendemail.smtpserver', 'man.viewer', 'instaweb.httpd'],
];

test('a program that a repository configures is never run, whatever names it', async () => {
  expect(new Set([...HOOKS, ...PROGRAMS]).size).toBeGreaterThanOrEqual(40);
  for (const name of HOOKS) await cp(await trap(name), path.join(at.path, '.git/hooks', name));
  await mkdir(path.join(traps, 'hooks'));
  const elsewhere = await trap('hooksPath');
  for (const name of HOOKS) await cp(elsewhere, path.join(traps, 'hooks', name));
  const set = (key: string, value: string) => at.git('config', '--add', key, value);
  for (const key of PROGRAMS) await set(key, await trap(key));
  for (const name of ['status', 'diff', 'log', 'commit', 'update-index', 'write-tree']) {
    await set(`alias.${name}`, `!${await trap(`alias.${name}`)}`);
  }
  await set('hook.x.event', 'pre-commit');
  await set('filter.trap.required', 'true');
  await set('filter.late.required', 'true');
  await set('commit.gpgSign', 'true');
  await set('log.showSignature', 'true');
  await set('push.gpgSign', 'true');
  await set('protocol.allow', 'always');
  await set('protocol.ext.allow', 'always');
  await set('remote.origin.url', `ext::${await trap('ext')} %S`);
  await set('remote.origin.vcs', 'ext');
  await set(`url.ext::${await trap('insteadOf')} .insteadOf`, 'https://');
  await writeFile(path.join(traps, 'included'), `[core]\n  fsmonitor = ${await trap('include')}\n`);
  await set('include.path', path.join(traps, 'included'));
  await set(`includeIf.gitdir:${at.around}/.path`, path.join(traps, 'included'));
  await writeFile(path.join(traps, 'attributes'), '* filter=trap diff=trap merge=trap\n');
  await set('core.attributesFile', path.join(traps, 'attributes'));
  await at.put('.gitattributes', '* filter=trap diff=trap merge=trap\n*.bin filter=late\n');
  await mkdir(path.join(at.path, '.git/info'), { recursive: true });
  await cp(path.join(traps, 'attributes'), path.join(at.path, '.git/info/attributes'));
  await at.put('file.txt', 'two\n');
  await at.put('both.bin', 'two\n');
  await at.put('new.txt', 'new\n');

  // Proof that the traps work: plain git triggers them.
  const control = path.join(at.around, 'control');
  await cp(at.path, control, { recursive: true });
  await plainGit(control, 'diff').catch(() => undefined);
  await plainGit(control, 'add', '-A').catch(() => undefined);
  const sprung = await readdir(markers);
  expect(sprung).toEqual(
    expect.arrayContaining([
      'include',
      'diff.trap.command',
      'filter.trap.clean',
      'post-index-change',
    ]),
  );
  for (const name of sprung) await rm(path.join(markers, name));

  // Also with configured hooks and with the remote's address naming a program.
  for (const rest of [() => undefined, () => set('core.hooksPath', path.join(traps, 'hooks'))]) {
    await rest();
    await at.put('new.txt', `${String(rest)}\n`);
    const reported = await askAll();
    expect(reported).toContain('"committed":true');
    expect(await readdir(markers)).toEqual([]);
  }
  const committed = await at.git('cat-file', '-p', 'HEAD:file.txt').catch(() => 'two\n');
  expect(committed).toBe('two\n');
});

test('ignore and attribute files outside the repository are not read, even if configured', async () => {
  const list = path.join(at.around, 'list');
  await writeFile(list, '* binary\n*.txt\n');
  await at.git('config', 'core.excludesFile', list);
  await at.git('config', 'core.attributesFile', list);
  await at.put('new.txt', 'new\n');
  await at.put('file.txt', 'two\n');
  expect(await at.git('status', '--porcelain')).not.toContain('new.txt');
  expect(await at.git('diff')).toContain('Binary files');
  expect(await at.workspace.gitStatus()).toMatchObject({
    changes: [
      { status: 'M', path: 'file.txt' },
      { status: '??', path: 'new.txt' },
    ],
  });
  expect((await at.workspace.gitDiff()).unstaged).toContain('+two');
});

test("git receives nothing from this process's environment", async () => {
  const trace = path.join(at.around, 'trace');
  vi.stubEnv('GIT_TRACE', trace);
  onTestFinished(() => void vi.unstubAllEnvs());
  await at.put('new.txt', 'new');
  expect(await askAll()).toContain('"committed":true');
  expect(await readdir(at.around)).not.toContain('trace');
});

test.each([
  ...[
    'ext::sh -c "touch /tmp/x"',
    'file:///etc',
    '/etc',
    '../other',
    'ssh://host/x',
    'git://host/x',
  ],
  ...['-oProxyCommand=x', '--upload-pack=x', 'git@host:x', 'ftp://host/x', 'https://', 'fd::7', ''],
])('a push to a remote like %s is refused', async (remote) => {
  await at.git('config', 'remote.origin.url', remote);
  await at.put('new.txt', 'new');
  expect(await at.workspace.gitSync()).toMatchObject({
    committed: true,
    pushed: false,
    pushError: expect.any(String),
  });
});

describe('a repository that refers to files outside', () => {
  /** A second repository, which the explorer must not read. */
  let other: string;
  beforeEach(async () => {
    other = path.join(at.around, 'other');
    await mkdir(other);
    await cp(path.join(template.path, '.git'), path.join(other, '.git'), { recursive: true });
    await writeFile(path.join(other, 'secret.txt'), `${SECRET}\n`);
    await plainGit(other, 'add', '-A');
    await plainGit(other, 'commit', '-q', '-m', SECRET);
    await writeFile(path.join(at.around, 'secret.txt'), `${SECRET}\n`);
    await at.put('file.txt', 'two\n');
  });

  const inGit = (...names: string[]) => path.join(at.path, '.git', ...names);
  const ofOther = (...names: string[]) => path.join(other, '.git', ...names);
  const replaced = async (name: string, target: string) => {
    await rm(inGit(name), { recursive: true, force: true });
    await symlink(target, inGit(name));
  };

  const CASES: Readonly<Record<string, () => Promise<unknown>>> = {
    '.git is a file': async () => {
      await rm(inGit(), { recursive: true });
      await writeFile(inGit(), `gitdir: ${ofOther()}\n`);
    },
    '.git is a link': async () => {
      await rm(inGit(), { recursive: true });
      await symlink(ofOther(), inGit());
    },
    commondir: () => writeFile(inGit('commondir'), ofOther()),
    gitdir: () => writeFile(inGit('gitdir'), ofOther()),
    'core.worktree': () => at.git('config', 'core.worktree', other),
    'extensions.worktreeConfig': async () => {
      await at.git('config', 'extensions.worktreeConfig', 'true');
      await writeFile(inGit('config.worktree'), `[core]\n  worktree = ${other}\n`);
    },
    'extensions.refStorage': () => at.git('config', 'extensions.refStorage', 'reftable'),
    'an unknown extension': () => at.git('config', 'extensions.somethingNew', 'true'),
    alternates: async () => {
      await mkdir(inGit('objects/info'), { recursive: true });
      await writeFile(inGit('objects/info/alternates'), `${ofOther('objects')}\n`);
      await pointTo(await plainGit(other, 'rev-parse', 'HEAD'));
    },
    'linked objects': async () => {
      await replaced('objects', ofOther('objects'));
      await pointTo(await plainGit(other, 'rev-parse', 'HEAD'));
    },
    'a linked folder of objects': async () => {
      const names = (await readdir(ofOther('objects'))).filter((name) => name.length === 2);
      for (const name of names) {
        await rm(inGit('objects', name), { recursive: true, force: true });
        await symlink(ofOther('objects', name), inGit('objects', name));
      }
      await pointTo(await plainGit(other, 'rev-parse', 'HEAD'));
    },
    'a linked pack': async () => {
      await plainGit(other, 'gc', '-q');
      for (const name of await readdir(ofOther('objects/pack'))) {
        await symlink(ofOther('objects/pack', name), inGit('objects/pack', name));
      }
      await pointTo(await plainGit(other, 'rev-parse', 'HEAD'));
    },
    'a linked HEAD': () => replaced('HEAD', ofOther('HEAD')),
    'a HEAD that climbs': () =>
      writeFile(inGit('HEAD'), `ref: refs/heads/../../../../other/.git/refs/heads/main\n`),
    'a HEAD outside of refs': () => writeFile(inGit('HEAD'), `ref: ${at.around}/secret.txt\n`),
    'a HEAD of nothing': () => writeFile(inGit('HEAD'), 'hello\n'),
    'a linked branch': () => replaced('refs/heads/main', ofOther('refs/heads/main')),
    'linked branches': () => replaced('refs/heads', ofOther('refs/heads')),
    'linked refs': () => replaced('refs', ofOther('refs')),
    'linked packed refs': async () => {
      await plainGit(other, 'pack-refs', '--all');
      await rm(inGit('refs/heads/main'));
      await replaced('packed-refs', ofOther('packed-refs'));
    },
    'a linked configuration': () => replaced('config', ofOther('config')),
    'a configuration that is a pipe': async () => {
      await rm(inGit('config'));
      await at.pipe('.git/config');
    },
    'a configuration that is none': () => writeFile(inGit('config'), '[[[\0'),
    'a linked index': () => replaced('index', ofOther('index')),
    'an index that is none': () => writeFile(inGit('index'), 'DIRCxxxxxxxxxxxxxxxxxxxxxxxx'),
    'an index that leads out': () => forgedIndex('xx/secret.txt', '../secret.txt'),
    'an index of absolute paths': async () => {
      const target = path.join(at.around, 'secret.txt');
      await forgedIndex('x'.repeat(target.length), target);
    },
    'an index of git’s own files': () => forgedIndex('xgit/hooks/x', '.git/hooks/x'),
    'a shared index': async () => {
      await at.git('update-index', '--split-index');
      await at.put('file.txt', 'three\n');
      await at.git('add', 'file.txt');
    },
    'linked lists of what is ignored': () => replaced('info', ofOther('info')),
    'a linked list of what is ignored': () => replaced('info/exclude', `${at.around}/secret.txt`),
    'a linked shallow': () => symlink(`${at.around}/secret.txt`, inGit('shallow')),
    'linked attributes': () =>
      symlink(`${at.around}/secret.txt`, path.join(at.path, '.gitattributes')),
    'a linked mailmap': () => symlink(`${at.around}/secret.txt`, path.join(at.path, '.mailmap')),
    'a linked folder that is tracked': async () => {
      await at.put('folder/secret.txt', 'mine');
      await at.git('add', '-A');
      await at.git('commit', '-q', '-m', 'second');
      await rm(path.join(at.path, 'folder'), { recursive: true });
      await symlink(other, path.join(at.path, 'folder'));
    },
    'a replaced commit': async () => {
      const [head = ''] = (await at.git('rev-parse', 'HEAD')).split('\n');
      await mkdir(inGit('refs/replace'), { recursive: true });
      await writeFile(inGit('refs/replace', head), await plainGit(other, 'rev-parse', 'HEAD'));
    },
    'a submodule with a program': async () => {
      const fsmonitor = await trap('submodule');
      await cp(other, path.join(at.path, 'sub'), { recursive: true });
      await rm(path.join(at.path, 'sub/secret.txt'));
      await at.git('add', 'sub');
      await at.git('commit', '-q', '-m', 'with another');
      await plainGit(path.join(at.path, 'sub'), 'config', 'core.fsmonitor', fsmonitor);
      await writeFile(path.join(at.path, 'sub/changed.txt'), 'changed');
    },
    'a folder of another’s repository': async () => {
      const fsmonitor = await trap('nested');
      await cp(other, path.join(at.path, 'nested'), { recursive: true });
      await rm(path.join(at.path, 'nested/secret.txt'));
      await plainGit(path.join(at.path, 'nested'), 'config', 'core.fsmonitor', fsmonitor);
    },
    'a folder that says where its repository is': () =>
      at.put('nested/.git', `gitdir: ${ofOther()}\n`),
    'a bare repository as the workspace': async () => {
      await rename(inGit(), path.join(at.around, 'bare'));
      await rm(at.path, { recursive: true });
      await rename(path.join(at.around, 'bare'), at.path);
    },
    'a repository around the workspace': async () => {
      await rename(inGit(), path.join(at.around, '.git'));
    },
  };

  test('the list of hostile repositories has at least 40 cases', () => {
    expect(Object.keys(CASES).length).toBeGreaterThanOrEqual(40);
  });

  test.each(Object.entries(CASES))('%s', { timeout: 60_000 }, async (_, make) => {
    await make();
    const before = await stateOf(at.around);
    const reported = await askAll();
    expect(reported).not.toContain(SECRET);
    expect(await stateOf(at.around)).toEqual(before);
    expect(await readdir(markers)).toEqual([]);
    // File requests do not depend on git.
    await at.workspace.write('beside.txt', 'beside');
  });

  test.each(['commondir', 'gitdir'])(
    'a repository with a %s is refused as not handled',
    async (name) => {
      await writeFile(inGit(name), ofOther());
      await expect(at.workspace.gitStatus()).rejects.toMatchObject({ status: 400 });
      await expect(at.workspace.gitSync()).rejects.toMatchObject({ status: 500 });
    },
  );

  test('a repository is refused whose forged index makes plain git show an outside file', async () => {
    await forgedIndex('xx/secret.txt', '../secret.txt');
    expect(await at.git('diff')).toContain(SECRET);
    await expect(at.workspace.gitDiff()).rejects.toMatchObject({ status: 400 });
  });

  test.each([
    ['a link among them', (folder: string) => symlink(ofOther('HEAD'), path.join(folder, 'x'))],
    [
      'one that is a link',
      async (folder: string) => {
        await rename(folder, path.join(at.around, 'away'));
        await symlink(path.join(at.around, 'away'), folder);
      },
    ],
    [
      'another one with a link',
      async (folder: string) => {
        await rename(folder, path.join(at.around, 'away'));
        await cp(path.join(at.around, 'away'), folder, { recursive: true });
        await symlink(ofOther('HEAD'), path.join(folder, 'x'));
      },
    ],
  ])('changed object folders are checked again: %s', async (_, change) => {
    // As if the folders had been unchanged for a long time.
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 60_000);
    onTestFinished(() => void vi.restoreAllMocks());
    await at.workspace.gitStatus();
    expect(await at.workspace.gitStatus()).toMatchObject({ isGitRepo: true });
    const [name = ''] = (await readdir(inGit('objects'))).filter((each) => each.length === 2);
    await change(inGit('objects', name));
    await expect(at.workspace.gitStatus()).rejects.toMatchObject({
      message: 'The repository is not supported: it has linked objects',
    });
  });

  test('a list of alternates is found even in a folder that was renamed from an object folder', async () => {
    const others = inGit('objects/ab');
    await mkdir(others);
    await writeFile(path.join(others, 'alternates'), `${ofOther('objects')}\n`);
    // Some file systems keep a folder's ctime when it is renamed.
    const { ctimeMs, ino } = await stat(others);
    const asBefore = <T extends Stats | undefined>(found: T): T =>
      found?.ino === ino ? Object.assign(found, { ctimeMs }) : found;
    const { self, stat: check } = Folder.prototype;
    vi.spyOn(Folder.prototype, 'self').mockImplementation(async function (this: Folder) {
      return asBefore(await self.call(this));
    });
    vi.spyOn(Folder.prototype, 'stat').mockImplementation(async function (this: Folder, name) {
      return asBefore(await check.call(this, name));
    });
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 60_000);
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await at.workspace.gitStatus()).toMatchObject({ isGitRepo: true });
    await rename(others, inGit('objects/info'));
    await expect(at.workspace.gitStatus()).rejects.toMatchObject({
      message: 'The repository is not supported: it borrows objects from another repository',
    });
  });

  test('folders stay open until their checks have ended', async () => {
    await replaced('config', ofOther('config'));
    const atWork = new Map<Folder, number>();
    const left: (number | undefined)[] = [];
    const { close, stat: check } = Folder.prototype;
    vi.spyOn(Folder.prototype, 'stat').mockImplementation(async function (this: Folder, name) {
      atWork.set(this, (atWork.get(this) ?? 0) + 1);
      await setTimeout(100);
      const stats = await check.call(this, name);
      atWork.set(this, (atWork.get(this) ?? 0) - 1);
      return stats;
    });
    vi.spyOn(Folder.prototype, 'close').mockImplementation(function (this: Folder) {
      left.push(atWork.get(this));
      return close.call(this);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    await expect(at.workspace.gitStatus()).rejects.toMatchObject({ status: 400 });
    expect(new Set(left)).toEqual(new Set([undefined, 0]));
  });

  test('a repository with an index or object list over the limits is refused with the reason', async () => {
    const refused = (why: string) => ({
      status: 400,
      message: `The repository is not supported: ${why}`,
    });
    const sound = await readFile(inGit('index'));
    await truncate(inGit('index'), 48 * 1024 * 1024 + 1);
    await expect(at.workspace.gitStatus()).rejects.toMatchObject(
      refused('its index is larger than 50331648 bytes'),
    );
    await writeFile(inGit('index'), sound);
    const names = Array.from({ length: 1_001 }, (_, each) => inGit('objects', `x${each}`));
    await Promise.all(names.map((name) => mkdir(name)));
    await expect(at.workspace.gitStatus()).rejects.toMatchObject(
      refused('it has too many object folders'),
    );
    await Promise.all(names.map((name) => rmdir(name)));
    const blob = (await at.git('rev-parse', 'HEAD:file.txt')).trim();
    const name = `${'x'.repeat(200)}/`.repeat(50);
    await at.git('update-index', '--add', '--cacheinfo', `100644,${blob},${name}x`);
    await expect(at.workspace.gitSync()).rejects.toMatchObject({
      ...refused('its index has paths outside of it'),
      status: 500,
    });
  });

  test('the check of a repository stops when its request is aborted', async () => {
    const root = await Folder.root(inGit('refs'));
    onTestFinished(() => root.close());
    expect(await root.isPlain(new AbortController().signal)).toBe(true);
    await expect(root.isPlain(AbortSignal.abort())).rejects.toThrow();
    // The check also stops while it lists entries.
    const leaving = new AbortController();
    vi.spyOn(Folder.prototype, 'entries').mockImplementation(async function* () {
      for (let each = 0; each < 9; each += 1) {
        leaving.abort(new Error('left'));
        yield await Promise.resolve({ name: 'file', kind: 'file' as const });
      }
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const git = await Folder.root(inGit());
    onTestFinished(() => git.close());
    await expect(checkObjects(git, leaving.signal)).rejects.toThrow('left');
  });

  test('a refused repository gets no commit, even if its check outlasts the commit', async () => {
    await symlink(ofOther('HEAD'), inGit('objects/x'));
    const check = Folder.prototype.isPlain;
    vi.spyOn(Folder.prototype, 'isPlain').mockImplementation(async function (this: Folder, signal) {
      const isPlain = await check.call(this, signal);
      await setTimeout(300);
      return isPlain;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const before = await at.git('rev-parse', 'HEAD');
    await expect(at.workspace.gitSync()).rejects.toMatchObject({ status: 500 });
    expect(await at.git('rev-parse', 'HEAD')).toBe(before);
  });

  const pointTo = (hash: string) => writeFile(inGit('refs/heads/main'), hash);

  /** Writes an index with one file under a name that git would refuse. */
  async function forgedIndex(real: string, forged: string): Promise<void> {
    await rm(inGit('index'));
    await at.put(real, 'mine');
    await at.git('add', real);
    const index = await readFile(inGit('index'));
    const body = index.subarray(0, -20);
    body.write(forged, body.indexOf(real));
    await writeFile(
      inGit('index'),
      Buffer.concat([body, createHash('sha1').update(body).digest()]),
    );
    await rm(path.join(at.path, real));
  }
});

/** Returns the contents of all files around the workspace. */
async function stateOf(folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await filesBelow(folder)) {
    const full = path.join(entry.parentPath, entry.name);
    const name = path.relative(folder, full);
    if (/^(work|views|markers)(\/|$)/.test(name) || !entry.isFile()) continue;
    found[name] = await readFile(full, 'latin1');
  }
  return found;
}
