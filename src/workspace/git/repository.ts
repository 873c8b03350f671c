import { NotFoundError, ServiceError } from '../../lib/errors.js';
import { allSettledOrThrow } from '../../lib/when-all-ended.js';
import { NotPlainError, type Folder } from '../files/folder.js';
import { factsOf, type RepositoryFacts } from './git-config.js';
import { UnsupportedRepositoryError } from './unsupported.js';

const GIT_FOLDER = '.git';

const MAX_REF_BYTES = 4_096;
const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_PACKED_REFS_BYTES = 16 * 1024 * 1024;

const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** A part of a branch name: what git allows, without names that start with a dot. */
const BRANCH_PART = /^(?![.-])(?!.*(?:\.\.|@\{))[^\p{Cc}\s~^:?*[\\]{1,200}(?<!\.lock)(?<!\.)$/u;

/** Files by which a repository refers to folders elsewhere. */
const ELSEWHERE = ['commondir', 'gitdir'];

/** A repository's present state, read as data. */
export interface Repository extends RepositoryFacts {
  /** Undefined if HEAD is detached. */
  readonly branch: string | undefined;
  /** Undefined before the first commit. */
  readonly head: string | undefined;
}

/**
 * Finds the repository whose `.git` is a plain folder of the workspace itself; parent folders are not
 * searched.
 * @throws UnsupportedRepositoryError
 */
export async function findRepository(
  root: Folder,
  cwd: string,
  signal: AbortSignal,
): Promise<Repository | undefined> {
  try {
    return await inGitFolder(root, (git) => readRepository(git, cwd, signal));
  } catch (error) {
    if (error instanceof NoRepositoryError) return undefined;
    // A link, folder or pipe is in place of a file of git's.
    if (error instanceof NotPlainError) {
      throw new UnsupportedRepositoryError('its .git folder has links or special files');
    }
    throw error;
  }
}

class NoRepositoryError extends ServiceError {
  override readonly name = 'NoRepositoryError';

  constructor() {
    super(500, 'Not a git repository');
  }
}

/** Calls `use` with the repository's `.git` folder. @throws ServiceError (500) if it is missing */
export async function inGitFolder<T>(root: Folder, use: (git: Folder) => Promise<T>): Promise<T> {
  const git = await root.folder(GIT_FOLDER).catch((error: unknown) => {
    if (error instanceof NotFoundError || error instanceof NotPlainError) {
      throw new NoRepositoryError();
    }
    throw error;
  });
  try {
    return await use(git);
  } finally {
    await git.close();
  }
}

async function readRepository(git: Folder, cwd: string, signal: AbortSignal): Promise<Repository> {
  const [head, objects, refs, config, ...elsewhere] = await allSettledOrThrow([
    readHead(git),
    git.stat('objects'),
    git.stat('refs'),
    git.readIfThere('config', MAX_CONFIG_BYTES),
    ...ELSEWHERE.map((name) => git.stat(name)),
  ]);
  if (head === undefined || !objects || !refs) throw new NoRepositoryError();
  const named = ELSEWHERE.find((_, index) => elsewhere[index]);
  if (named !== undefined) throw new UnsupportedRepositoryError(`it has a ${named}`);
  const facts = await factsOf(config?.bytes ?? Buffer.alloc(0), cwd, signal);
  if (HASH.test(head)) return { ...facts, branch: undefined, head };
  const branch = branchOf(head);
  if (branch === undefined) {
    throw new UnsupportedRepositoryError('its HEAD is neither a branch nor a commit');
  }
  return { ...facts, branch, head: await readBranch(git, branch) };
}

export async function readHead(git: Folder): Promise<string | undefined> {
  return (await git.readIfThere('HEAD', MAX_REF_BYTES))?.bytes.toString().trimEnd();
}

export function branchOf(head: string): string | undefined {
  const branch = /^ref: refs\/heads\/(.+)$/.exec(head)?.[1];
  return branch !== undefined && isBranch(branch) ? branch : undefined;
}

const isBranch = (name: string): boolean =>
  name.length <= 1_000 && name.split('/').every((part) => BRANCH_PART.test(part));

/** Returns the folder names from `.git` to a branch's file, and the file's name. */
export function placeOfBranch(branch: string): { folders: string[]; name: string } {
  const folders = ['refs', 'heads', ...branch.split('/')];
  const name = folders.pop() ?? ''; // a branch has at least one part
  return { folders, name };
}

/** Returns the commit of a branch, or undefined before the first one. @throws UnsupportedRepositoryError */
export async function readBranch(git: Folder, branch: string): Promise<string | undefined> {
  const { folders, name } = placeOfBranch(branch);
  const loose = await git
    .within(folders, (folder) => folder.readIfThere(name, MAX_REF_BYTES))
    .catch((error: unknown) => {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    });
  if (loose) {
    const hash = loose.bytes.toString().trimEnd();
    if (HASH.test(hash)) return hash;
    throw new UnsupportedRepositoryError('its branch is not a commit');
  }
  const packed = await git.readIfThere('packed-refs', MAX_PACKED_REFS_BYTES);
  const line = packed?.bytes
    .toString()
    .split('\n')
    .find((each) => each.endsWith(` refs/heads/${branch}`));
  const hash = line?.split(' ')[0];
  return hash !== undefined && HASH.test(hash) ? hash : undefined;
}
