import type { Stats } from 'node:fs';
import { setBounded } from '../../bounded-map.js';
import { NotFoundError, ServiceError } from '../../errors.js';
import { NotPlainError, type Folder } from '../folder.js';
import { factsOf, type RepositoryFacts } from './git-config.js';
import { UnsupportedRepositoryError } from './unsupported.js';

const GIT_FOLDER = '.git';

const MAX_REF_BYTES = 4_096;
const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_PACKED_REFS_BYTES = 16 * 1024 * 1024;

/** Of objects: git itself has 258. */
const MAX_FOLDERS = 1_000;
/** Each is open while it is looked at. */
const FOLDERS_AT_ONCE = 64;

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
  const head = await readHead(git);
  const [objects, refs] = [await git.stat('objects'), await git.stat('refs')];
  if (head === undefined || !objects || !refs) throw new NoRepositoryError();
  for (const name of ELSEWHERE) {
    if (await git.stat(name)) throw new UnsupportedRepositoryError(`it has a ${name}`);
  }
  const config = await git.readIfThere('config', MAX_CONFIG_BYTES);
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

/**
 * Whether objects are all in the repository itself: neither links nor another repository that it
 * borrows from.
 *
 * @throws UnsupportedRepositoryError; the signal's reason
 */
export async function checkObjects(git: Folder, signal: AbortSignal): Promise<void> {
  await git.within(['objects'], async (objects) => {
    const folders: string[] = [];
    if (!(await objects.isPlain(signal)))
      throw new UnsupportedRepositoryError('it has linked objects');
    for await (const { kind, name } of objects.entries()) {
      if (kind === 'folder') folders.push(name);
      if (folders.length > MAX_FOLDERS) {
        throw new UnsupportedRepositoryError('there are too many folders among its objects');
      }
    }
    for (let at = 0; at < folders.length; at += FOLDERS_AT_ONCE) {
      const some = folders.slice(at, at + FOLDERS_AT_ONCE);
      await Promise.all(some.map((name) => checkFolder(objects, name, signal)));
    }
  });
}

async function checkFolder(objects: Folder, name: string, signal: AbortSignal): Promise<void> {
  const stats = await objects.stat(name);
  if (stats?.isDirectory() && PLAIN.has(stateOf(stats))) return;
  await objects.within([name], async (folder) => {
    const now = Date.now();
    const before = await folder.self();
    if (!(await folder.isPlain(signal)))
      throw new UnsupportedRepositoryError('it has linked objects');
    if (name === 'info' && (await folder.stat('alternates'))) {
      throw new UnsupportedRepositoryError('it borrows objects from another one');
    }
    // One that has just changed may change again within the same tick of the file system's clock.
    if (before.ctimeMs < now - TICK_MS) setBounded(PLAIN, stateOf(before), true, MAX_PLAIN);
  });
}

/**
 * Folders in which there was nothing but files and folders. Nobody puts anything into one, or another one in its
 * place, without its state being another: that time is set by the system alone.
 */
const PLAIN = new Map<string, true>();
/** Of some repositories that have all 256 folders of objects. */
const MAX_PLAIN = 4_096;

/** Milliseconds, more than any file system takes for two changes to have different times. */
const TICK_MS = 2_000;

const stateOf = ({ ctimeMs, dev, ino }: Stats): string => `${dev} ${ino} ${ctimeMs}`;
