import path from 'node:path';
import { ConflictError, ServiceError } from '../../lib/errors.js';
import { Folder, replaceFile } from '../files/folder.js';
import { changesOf, type CodedChange } from './status.js';
import { withView, type Git, type GitView } from './git-view.js';
import { clearOwnLock, withLock } from './own-lock.js';
import {
  branchOf,
  findRepository,
  inGitFolder,
  placeOfBranch,
  readBranch,
  readHead,
} from './repository.js';
import { MAX_INDEX_BYTES, type WorkspacePlace } from './view-folder.js';

export const DEFAULT_MESSAGE = 'sync changes';
export const MAX_MESSAGE = 10_000;
export const NOTHING_TO_COMMIT = 'nothing to commit';

/** Author of commits if the repository configures none. */
const AUTHOR = { name: 'Agent Platform', email: 'agent-platform@localhost' };

/** Maximum bytes of one object that is added to the repository. */
const MAX_OBJECT_BYTES = 512 * 1024 * 1024;

/** Files that show an unfinished git operation, which a commit would end wrongly. */
const UNDER_WAY = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply'];

/** The new commit; undefined if nothing differed. */
export interface Committed {
  readonly hash: string | undefined;
  /** HEAD's commit if nothing was committed; undefined before the first commit. */
  readonly head: string | undefined;
  /** The branch committed to; undefined if HEAD is detached. */
  readonly branch: string | undefined;
  readonly remote: string | undefined;
}

/**
 * Stages and commits all changes. The objects, the index and the branch are written in this order, each
 * atomically: a kill leaves the repository unchanged, or with everything staged.
 * @throws ServiceError (500) if git fails, ConflictError while another program is at work in it
 */
export async function commitAll(
  place: WorkspacePlace,
  message: string,
  signal: AbortSignal | undefined,
): Promise<Committed> {
  const ending = signal ?? new AbortController().signal;
  const found = await findRepository(place.root, place.path, ending);
  if (!found) throw new ServiceError(500, 'Not a git repository');
  return inGitFolder(place.root, (folder) =>
    withLock(place.root, { folder, name: 'index' }, async () => {
      await refuseUnderWay(folder);
      // Read again under the lock.
      const repository = await findRepository(place.root, place.path, ending);
      if (!repository) throw new ServiceError(500, 'Not a git repository');
      const { branch, head, remote } = repository;
      const hash = await withView(place, repository, signal, async (view) => {
        const made = await commitIn(view, message);
        if (made === undefined) return undefined;
        await publish(place, folder, view, made);
        return made;
      });
      return { hash, head, branch, remote };
    }),
  );
}

/** Removes stale locks of this platform. An unsupported repository has none. */
export async function clearLocks(root: Folder): Promise<void> {
  try {
    await inGitFolder(root, async (git) => {
      await clearOwnLock(git, 'HEAD');
      const branch = branchOf((await readHead(git)) ?? '');
      if (branch !== undefined) await clearBranchLock(git, branch);
      // Last, because git checks out no other branch while the index is locked.
      await clearOwnLock(git, 'index');
    });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

async function clearBranchLock(git: Folder, branch: string): Promise<void> {
  const { folders, name } = placeOfBranch(branch);
  try {
    await git.within(folders, (folder) => clearOwnLock(folder, name));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error; // the folder is not a repository
  }
}

async function refuseUnderWay(git: Folder): Promise<void> {
  for (const name of UNDER_WAY) {
    if (await git.stat(name)) {
      throw new ServiceError(500, 'A merge or rebase is under way in the repository: end it first');
    }
  }
}

/** Commits all changes. @returns the new commit, or undefined if nothing differs. */
async function commitIn(view: GitView, message: string): Promise<string | undefined> {
  const { git, repository } = view;
  const { head } = repository;
  const { submodules } = await view.checked();
  const { changes } = await changesOf(git, '--no-renames');
  if (changes.some(isUnmerged)) {
    throw new ServiceError(500, 'There are conflicts in the repository: resolve them first');
  }
  await stage(git, changes, submodules);
  const tree = await lineOf(git, ['write-tree']);
  const before =
    head === undefined
      ? await lineOf(git, ['hash-object', '-t', 'tree', '--stdin'])
      : await lineOf(git, ['rev-parse', '--verify', `${head}^{tree}`]);
  if (tree === before) return undefined;
  const { name = AUTHOR.name, email = AUTHOR.email } = repository.author;
  const parents = head === undefined ? [] : ['-p', head];
  return lineOf(git, ['commit-tree', tree, ...parents], {
    input: Buffer.from(message),
    env: {
      GIT_AUTHOR_NAME: name,
      GIT_AUTHOR_EMAIL: email,
      GIT_COMMITTER_NAME: name,
      GIT_COMMITTER_EMAIL: email,
    },
  });
}

const isUnmerged = ({ code }: CodedChange): boolean =>
  code.includes('U') || code === 'AA' || code === 'DD';

/** Stages paths one by one, as literals rather than patterns, and without submodules. */
async function stage(
  git: Git,
  changes: readonly CodedChange[],
  submodules: ReadonlySet<string>,
): Promise<void> {
  const paths = changes
    .map((change) => change.path)
    .filter((each) => !each.endsWith('/') && !submodules.has(each));
  if (paths.length === 0) return;
  const input = Buffer.from(paths.map((each) => `${each}\0`).join(''), 'latin1');
  await git(['update-index', '--add', '--remove', '--replace', '-z', '--stdin'], { input });
}

async function lineOf(git: Git, args: readonly string[], options?: Parameters<Git>[1]) {
  return (await git(args, options)).output.toString().trim();
}

/** Writes the new objects and the index of a view to the repository, and moves its branch. */
async function publish(
  { root }: WorkspacePlace,
  git: Folder,
  { folder, repository }: GitView,
  hash: string,
): Promise<void> {
  const view = await Folder.root(folder);
  try {
    await view.within(['objects'], (objects) => handOver(root, objects, git));
    const { bytes, modified } = await view.read('index', MAX_INDEX_BYTES);
    await replaceFile(root, { folder: git, name: 'index' }, bytes, { modified });
    await moveHead(root, git, repository, hash);
  } finally {
    await view.close();
  }
}

async function handOver(root: Folder, objects: Folder, git: Folder): Promise<void> {
  for await (const { kind, name } of objects.entries()) {
    if (kind !== 'folder' || name === 'info') continue;
    await objects.within([name], (made) =>
      git.within(
        ['objects', name],
        async (target) => {
          // An object index is written after its pack.
          const files = (await namesIn(made)).sort((a, b) =>
            path.extname(a) < path.extname(b) ? 1 : -1,
          );
          for (const file of files) {
            if (await target.stat(file)) continue;
            const { bytes } = await made.read(file, MAX_OBJECT_BYTES);
            const place = { folder: target, name: file };
            await replaceFile(root, place, bytes, { mode: 0o444, isLasting: false });
          }
        },
        { makes: true },
      ),
    );
  }
}

async function namesIn(folder: Folder): Promise<string[]> {
  const names: string[] = [];
  for await (const { kind, name } of folder.entries()) if (kind === 'file') names.push(name);
  return names;
}

/** Moves the branch, or a detached HEAD, to a commit, unless another program has moved it. */
async function moveHead(
  root: Folder,
  git: Folder,
  { branch, head }: { readonly branch: string | undefined; readonly head: string | undefined },
  hash: string,
): Promise<void> {
  const { folders, name } =
    branch === undefined ? { folders: [], name: 'HEAD' } : placeOfBranch(branch);
  await git.within(
    folders,
    (folder) =>
      withLock(root, { folder, name }, async () => {
        const now =
          branch === undefined
            ? (await folder.readIfThere(name, 4_096))?.bytes.toString().trimEnd()
            : await readBranch(git, branch);
        if (now !== head)
          throw new ConflictError('The branch was moved by another program: retry', 'BRANCH_MOVED');
        await replaceFile(root, { folder, name }, Buffer.from(`${hash}\n`));
      }),
    { makes: true },
  );
}
