import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { until } from '../support/until.js';
import { startHelper } from './helper-process.js';
import { contentOf, numberOf } from './numbered-content.js';
import { processesIn, testWorkspace, type TestWorkspace } from './support.js';

let around: TestWorkspace;
let program: string;
let at: TestWorkspace;
let child: ChildProcess | undefined;
beforeAll(async () => {
  around = await testWorkspace();
  program = path.join(around.around, 'explorer.mjs');
  await build({
    entryPoints: [path.join(projectRoot, 'test/workspace/explorer-process.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
});
afterAll(() => around?.close());
beforeEach(async () => {
  at = await testWorkspace();
  await at.put('file.txt', contentOf(0));
});
afterEach(async () => {
  child?.kill('SIGKILL');
  await at.close();
});

const inWorkspace = (...names: string[]) => path.join(at.path, ...names);
const namesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);

/** Reports whether a view folder meets the condition. */
const inViews = (has: (view: string) => boolean) =>
  namesIn(at.views).some((name) => has(path.join(at.views, name)));

/**
 * Starts a process that writes or syncs repeatedly and kills it at a certain point. The process is
 * stopped first, so that it is still at that point when killed.
 *
 * @returns the number of completed writes or syncs.
 */
async function killed(deed: 'write' | 'sync', isThere: () => boolean): Promise<number> {
  const started = spawn(process.execPath, [program, at.path, at.views, deed], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child = started;
  const ended = once(started, 'exit');
  let output = '';
  started.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
  await stopped(started, isThere);
  started.kill('SIGKILL');
  await ended;
  if (!started.stdout.readableEnded) await once(started.stdout, 'end');
  return output.split('\n').length - 1;
}

/** Stops a process when it has reached a certain point. */
async function stopped(started: ChildProcess, isThere: () => boolean): Promise<void> {
  for (;;) {
    await setImmediate();
    expect(started.exitCode).toBe(null);
    if (!isObserved(isThere)) continue;
    started.kill('SIGSTOP');
    while (!isStopped(started.pid)) await setImmediate();
    if (isObserved(isThere)) break;
    started.kill('SIGCONT');
  }
}

/** Evaluates the condition; false if a file vanishes during the check. */
function isObserved(isThere: () => boolean): boolean {
  try {
    return isThere();
  } catch {
    return false; // a file vanished
  }
}

const isStopped = (pid = 0): boolean =>
  readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.startsWith('T') === true;

/** Checks the workspace as the next process finds it after its start. */
async function afterStart(done: number) {
  const next = at.again();
  await next.clear();
  expect((await readdir(at.path)).filter((name) => !['.git', 'file.txt'].includes(name))).toEqual(
    [],
  );
  expect(await readdir(at.views).catch(() => [])).toEqual([]);
  const number = numberOf((await next.read('file.txt')).content);
  expect([done, done + 1]).toContain(number);
  return next;
}

const SCRATCH = '.agent-platform-tmp';
test.each<[string, () => boolean]>([
  ['a piece of it is there', () => namesIn(inWorkspace(SCRATCH)).length > 0],
  [
    'half of it is there',
    () =>
      namesIn(inWorkspace(SCRATCH)).some((name) => {
        const { size } = statSync(inWorkspace(SCRATCH, name));
        return size < contentOf(1).length;
      }),
  ],
])('a write that is killed when %s leaves the old file or the new one', async (_, isThere) => {
  const next = await afterStart(await killed('write', isThere));
  await next.write('file.txt', contentOf(9));
  expect(await readFile(inWorkspace('file.txt'), 'utf8')).toBe(contentOf(9));
});

test.each<[string, () => boolean]>([
  ['git is at work', () => inViews((view) => existsSync(path.join(view, 'index')))],
  [
    'it has made objects',
    () =>
      inViews((view) =>
        namesIn(path.join(view, 'objects')).some((name) => /^[0-9a-f]{2}$/.test(name)),
      ),
  ],
  ['objects are handed over', () => namesIn(inWorkspace(SCRATCH)).length > 0 && hasLock('index')],
  ['the branch is moved', () => hasLock('refs/heads/main')],
  [
    'the branch has been moved',
    () => inViews((view) => headIn(view) !== '' && headIn(view) !== headIn(inWorkspace('.git'))),
  ],
])('a sync that is killed when %s leaves a sound repository', async (_, isThere) => {
  await at.git('init', '-q', '-b', 'main');
  await at.git('add', '-A');
  await at.git('commit', '-q', '-m', 'sync 0');
  const done = await killed('sync', isThere);
  expect(hasLock('index') || hasLock('refs/heads/main')).toBe(true);
  const next = await afterStart(done);
  const names = await readdir(inWorkspace('.git'), { recursive: true });
  expect(names.filter((name) => name.endsWith('.lock'))).toEqual([]);
  // Unused objects may remain, but no broken ones.
  expect(await at.git('fsck', '--strict', '--no-dangling')).toBe('');
  expect([`sync ${done}`, `sync ${done + 1}`]).toContain((await next.gitLog(1))[0]?.subject);
  await next.gitSync('after it');
  expect(await at.git('status', '--porcelain')).toBe('');
  const committed = await at.git('show', 'HEAD:file.txt');
  expect([done, done + 1]).toContain(numberOf(committed));
  // Git ends by itself when its work is done.
  await until(async () => (await processesIn(at.views)).length === 0);
});

test('a helper that is terminated during a sync releases its locks', async () => {
  await at.git('init', '-q', '-b', 'main');
  await at.git('add', '-A');
  await at.git('commit', '-q', '-m', 'first');
  const { line, process: helper } = await startHelper(at);
  child = helper;
  const ended = once(helper, 'exit');
  let number = 0;
  const next = () => {
    number += 1;
    for (const call of [
      { what: 'write', path: 'file.txt', content: contentOf(number) },
      { what: 'sync' },
    ]) {
      line.write(`${JSON.stringify({ id: number, call })}\n`);
    }
  };
  // An answer with a size is that of a write.
  createInterface({ input: line }).on('line', (answer) => answer.includes('"size"') || next());
  next();
  await stopped(helper, () => hasLock('index'));
  helper.kill('SIGTERM');
  helper.kill('SIGCONT');
  expect(await ended).toEqual([0, null]);
  const names = await readdir(inWorkspace('.git'), { recursive: true });
  expect(names.filter((name) => name.endsWith('.lock'))).toEqual([]);
  expect(await at.git('fsck', '--strict', '--no-dangling')).toBe('');
});

/** Returns the commit of the only branch in a repository. */
function headIn(git: string): string {
  const heads = path.join(git, 'refs', 'heads');
  const [branch = ''] = readdirSync(heads).filter((name) => !name.endsWith('.lock'));
  return readFileSync(path.join(heads, branch), 'utf8');
}

const hasLock = (name: string) => existsSync(inWorkspace('.git', `${name}.lock`));
