import { NotFoundError, ServiceError } from '../../lib/errors.js';
import { whenAllEnded } from '../../lib/when-all-ended.js';
import { NotPlainError, type Folder } from '../files/folder.js';
import { factsOf, type RepositoryFacts } from './git-config.js';
import { UnsupportedRepositoryError } from './unsupported.js';

const GIT_FOLDER = '.git';

const MAX_REF_BYTES = 4_096;
const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_PACKED_REFS_BYTES = 16 * 1024 * 1024;

const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** What a part of a branch's name may be: what git allows, less what is hidden. */
const BRANCH_PART = /^(?![.-])(?!.*(?:\.\.|@\{))[^\p{Cc}\s~^:?*[\\]{1,200}(?<!\.lock)(?<!\.)$/u;

/** What files other than these two say of how a repository lies. */
const ELSEWHERE = ['commondir', 'gitdir'];

/** A repository as it stands, read as data. */
export interface Repository extends RepositoryFacts {
  /** Undefined when HEAD is a commit by itself. */
  readonly branch: string | undefined;
  /** Undefined before the first commit. */
  readonly head: string | undefined;
}

/**
 * The repository whose `.git` is a plain folder of the workspace's own; none above is looked for.
 *
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
    // Something in it is a link, a folder or a pipe, where git has a file.
    if (error instanceof NotPlainError) {
      throw new UnsupportedRepositoryError('there are links or special files in its folder');
    }
    throw error;
  }
}

class NoRepositoryError extends ServiceError {
  constructor() {
    super(500, 'Not a git repository');
  }
}

/** What is done in the repository's own folder. @throws ServiceError (500) where there is none */
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
  const [head, objects, refs, config, ...elsewhere] = await whenAllEnded([
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

/** What HEAD says; undefined where there is none. */
export async function readHead(git: Folder): Promise<string | undefined> {
  return (await git.readIfThere('HEAD', MAX_REF_BYTES))?.bytes.toString().trimEnd();
}

/** The branch that HEAD names, if that is what it says. */
export function branchOf(head: string): string | undefined {
  const branch = /^ref: refs\/heads\/(.+)$/.exec(head)?.[1];
  return branch !== undefined && isBranch(branch) ? branch : undefined;
}

const isBranch = (name: string): boolean =>
  name.length <= 1_000 && name.split('/').every((part) => BRANCH_PART.test(part));

/** The folder of a branch's file, from the repository's own on, and its name there. */
export function placeOfBranch(branch: string): { folders: string[]; name: string } {
  const folders = ['refs', 'heads', ...branch.split('/')];
  const name = folders.pop() ?? ''; // there is one
  return { folders, name };
}

/** The commit of a branch; undefined before its first one. @throws UnsupportedRepositoryError */
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
