import { readFile, symlink } from 'node:fs/promises';
import path from 'node:path';
import { StartFailure } from '../../../dev/failure.js';
import { run, runToEnd } from '../../../dev/processes/run.js';
import { projectRoot } from '../../../dev/root.js';
import type { AtEnd } from '../cleanups.js';
import type { Steps } from './steps.js';

/** Milliseconds for git, which removes the packages of a worktree slowly on a busy disk. */
const GIT_TIMEOUT_MS = 600_000;

/** A built state of the product and its benchmarks. */
export interface State {
  readonly name: string;
  readonly folder: string;
}

/** Returns the state of this checkout, which is built already. */
export async function presentState(): Promise<State> {
  const changes = await git('status', '--porcelain', '--untracked-files=no');
  const commit = await git('rev-parse', '--short', 'HEAD');
  return { name: changes === '' ? commit : `${commit} and changes`, folder: projectRoot };
}

/**
 * Builds a commit in a git worktree, which is removed at the end.
 *
 * @param folder for the worktree.
 * @throws StartFailure if the commit does not exist.
 */
export async function stateAt(
  commit: string,
  folder: string,
  steps: Steps,
  atEnd: AtEnd,
): Promise<State> {
  const name = await shortNameOf(commit);
  const worktree = path.join(folder, 'worktree');
  atEnd(async () => {
    await steps.end();
    const remove = ['worktree', 'remove', '--force', worktree];
    await runToEnd('git', remove, { cwd: projectRoot, timeout: GIT_TIMEOUT_MS });
  });
  await git('worktree', 'add', '--detach', worktree, name);
  const lock = async (root: string) => readFile(path.join(root, 'package-lock.json'), 'utf8');
  if ((await lock(worktree)) === (await lock(projectRoot))) {
    const modules = path.join(projectRoot, 'node_modules');
    await symlink(modules, path.join(worktree, 'node_modules'), 'junction');
  } else {
    console.log(`Installing the packages of ${name} ...`);
    await steps.run(projectRoot, [path.join('scripts', 'install.mjs'), worktree]);
  }
  console.log(`Building ${name} ...`);
  await steps.run(worktree, [path.join('scripts', 'build.mjs'), '--dev']);
  return { name, folder: worktree };
}

async function shortNameOf(commit: string): Promise<string> {
  try {
    return await git('rev-parse', '--verify', '--quiet', '--short', `${commit}^{commit}`);
  } catch (error) {
    throw new StartFailure(`The repository has no commit ${commit}: check its name.`, {
      cause: error,
    });
  }
}

async function git(...args: readonly string[]): Promise<string> {
  return (await run('git', args, { cwd: projectRoot, timeout: GIT_TIMEOUT_MS })).trim();
}
