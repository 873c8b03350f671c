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

/** Who commits where the repository names nobody. */
const AUTHOR = { name: 'Agent Platform', email: 'agent-platform@localhost' };

/** Bytes of one object that is put into the repository. */
const MAX_OBJECT_BYTES = 512 * 1024 * 1024;

/** Files that say that something of git's is under way, which a commit of ours would end wrongly. */
const UNDER_WAY = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply'];

/** A commit that was made; undefined when there was nothing to commit. */
export interface Committed {
  readonly hash: string | undefined;
  /** Of HEAD, when nothing was committed; undefined before the first commit. */
  readonly head: string | undefined;
  /** That was committed to; undefined when HEAD is a commit by itself. */
  readonly branch: string | undefined;
  readonly remote: string | undefined;
}

/**
 * Stages all that differs, and commits it. The repository gets, in this order, the new objects, the
 * index, and the branch, each whole: who is killed meanwhile leaves it as it was, or with all of it
 * staged.
 *
 * @throws ServiceError (500) where there is no repository, and when git fails
 * @throws ConflictError while another program is at work in it
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
      // As it is now that nobody else changes it.
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

/** Removes locks that were left of ours. A repository that is not handled has none. */
export async function clearLocks(root: Folder): Promise<void> {
  try {
    await inGitFolder(root, async (git) => {
      await clearOwnLock(git, 'HEAD');
      const branch = branchOf((await readHead(git)) ?? '');
      if (branch !== undefined) await clearBranchLock(git, branch);
      // The last one: until it is gone no other branch is checked out.
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
    if (!(error instanceof ServiceError)) throw error; // its folder is none
  }
}

async function refuseUnderWay(git: Folder): Promise<void> {
  for (const name of UNDER_WAY) {
    if (await git.stat(name)) {
      throw new ServiceError(500, 'A merge or rebase is under way in the repository: end it first');
    }
  }
}

/** @returns the new commit, or undefined when nothing differs. */
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

/** One path at a time: none is a pattern, and none is another repository. */
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

/** Hands over to the repository what a view has made. */
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
          // An index of objects comes after what it is of.
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

/** Puts the branch, or HEAD itself, on a commit, unless somebody else has moved it meanwhile. */
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
        if (now !== head) throw new ConflictError('The branch has moved meanwhile: try again');
        await replaceFile(root, { folder, name }, Buffer.from(`${hash}\n`));
      }),
    { makes: true },
  );
}
