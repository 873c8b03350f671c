import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { devNull } from 'node:os';
import path from 'node:path';
import { isRunning } from '../../lib/is-running.js';
import { allSettledOrThrow } from '../../lib/when-all-ended.js';
import { TooLargeError, type FileContent, type Folder } from '../files/folder.js';
import { SCRATCH } from '../files/segments.js';
import { inGitFolder, type Repository } from './repository.js';
import { GIT_MS } from './run-git.js';
import { UnsupportedRepositoryError } from './unsupported.js';

/** Maximum number of bytes of an index of about 500,000 files; concurrent readers hold one each in memory. */
export const MAX_INDEX_BYTES = 48 * 1024 * 1024;
const MAX_LIST_BYTES = 1024 * 1024;

/** Milliseconds after which an unmarked folder counts as unused: each use marks it. */
const LEFT_MS = 4 * GIT_MS;

/** Settings of every view. */
const SETTINGS = `
[core]
  bare = false
  hooksPath = ${devNull}
  fsmonitor = false
  attributesFile = ${devNull}
  excludesFile = ${devNull}
  commitGraph = false
  multiPackIndex = false
  logAllRefUpdates = false
[gc]
  auto = 0
[maintenance]
  auto = false
[submodule]
  recurse = false
[commit]
  gpgSign = false
[index]
  skipHash = false
`;

/** A workspace's folder, and a folder for its views outside of the workspace, which no agent can reach. */
export interface WorkspacePlace {
  readonly root: Folder;
  readonly path: string;
  readonly views: string;
}

export interface ViewFolder {
  readonly path: string;
  /** Hash of the index in the folder. */
  readonly indexed: string;
  readonly indexBytes: number;
}

export interface LeasedFolder extends ViewFolder {
  /** @param isWell true if the folder may be used again. */
  release(isWell: boolean): Promise<void>;
}

/** Provides the folder of a view. */
export type LeaseFolder = (place: WorkspacePlace, repository: Repository) => Promise<LeasedFolder>;

export const ownFolder: LeaseFolder = async (place, repository) =>
  lentOnce(await makeFolder(place, repository));

/** Lends a folder to one view, and removes it with the view. */
export const lentOnce = (folder: ViewFolder): LeasedFolder => ({
  ...folder,
  release: () => removeFolder(folder),
});

export async function makeFolder(
  place: WorkspacePlace,
  repository: Repository,
): Promise<ViewFolder> {
  const folder = await newFolder(place.views);
  try {
    return { path: folder, ...(await fill(folder, place, repository)) };
  } catch (error) {
    await remove(folder);
    throw error;
  }
}

/** Marks the folder as in use, for processes starting beside this one; false if it was removed. */
export function markAtWork({ path }: ViewFolder): Promise<boolean> {
  const now = new Date();
  return utimes(path, now, now).then(
    () => true,
    () => false,
  );
}

export const removeFolder = ({ path }: ViewFolder): Promise<void> => remove(path);

async function newFolder(views: string): Promise<string> {
  const make = () => mkdtemp(path.join(views, `git-${process.pid}-`));
  return make().catch(async () => {
    await mkdir(views, { recursive: true, mode: 0o700 });
    return make();
  });
}

/** Retried, because a git process that was killed or orphaned may still write there. */
const remove = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });

/** Removes views of processes that have ended. */
export async function clearViews(views: string): Promise<void> {
  const names = await readdir(views).catch(() => []); // no view exists yet
  for (const name of names) {
    const pid = Number(/^git-(\d+)-/.exec(name)?.[1]);
    if (Number.isNaN(pid)) continue;
    const folder = path.join(views, name);
    const made = await stat(folder).catch(() => undefined); // another process removed it
    const isOld = made !== undefined && Date.now() - made.mtimeMs > LEFT_MS;
    // A folder with this process's id belongs to an earlier process: this one has just started.
    if (isOld || pid === process.pid || !isRunning(pid)) {
      await remove(folder);
    }
  }
}

async function fill(
  folder: string,
  { root }: WorkspacePlace,
  repository: Repository,
): Promise<Pick<ViewFolder, 'indexed' | 'indexBytes'>> {
  const { branch, comparison, head, objectFormat } = repository;
  const put = (name: string, content: string | Uint8Array) =>
    writeFile(path.join(folder, name), content);
  await Promise.all(
    ['objects', 'info', path.join('refs', 'heads')].map((name) =>
      mkdir(path.join(folder, name), { recursive: true }),
    ),
  );
  const [index, [excluded, attributes] = [], shallow] = await inGitFolder(root, (git) =>
    allSettledOrThrow([
      readIndex(git),
      inInfo(git, (info) =>
        allSettledOrThrow(LISTS.map((name) => info.readIfThere(name, MAX_LIST_BYTES))),
      ),
      git.readIfThere('shallow', MAX_LIST_BYTES),
    ]),
  );
  const version = objectFormat === 'sha1' ? 0 : 1;
  await Promise.all([
    put(
      'config',
      `${SETTINGS}[core]\n${comparison}  repositoryFormatVersion = ${version}\n` +
        (version === 1 ? `[extensions]\n  objectFormat = ${objectFormat}\n` : ''),
    ),
    put('HEAD', branch === undefined ? `${head}\n` : `ref: refs/heads/${VIEWED}\n`),
    branch !== undefined && head !== undefined && put(`refs/heads/${VIEWED}`, `${head}\n`),
    put(
      'info/exclude',
      Buffer.concat([excluded?.bytes ?? Buffer.alloc(0), Buffer.from(`\n/${SCRATCH}/\n`)]),
    ),
    attributes && put('info/attributes', attributes.bytes),
    shallow && put('shallow', shallow.bytes),
    index && put('index', index.bytes),
  ]);
  // Git compares the index's age with a file's to detect changes.
  if (index) await utimes(path.join(folder, 'index'), index.modified, index.modified);
  const bytes = index?.bytes ?? Buffer.alloc(0);
  return { indexed: createHash('sha256').update(bytes).digest('base64'), indexBytes: bytes.length };
}

/** Files of `info` that a view has: what is ignored, and line ends of files. */
export const LISTS = ['exclude', 'attributes'] as const;

/** Calls `use` with the folder `info` of the repository, if it exists. */
export async function inInfo<T>(
  git: Folder,
  use: (info: Folder) => Promise<T | undefined>,
): Promise<T | undefined> {
  const info = await git.stat('info');
  return info?.isDirectory() ? git.within(['info'], use) : undefined;
}

async function readIndex(git: Folder): Promise<FileContent | undefined> {
  try {
    return await git.readIfThere('index', MAX_INDEX_BYTES);
  } catch (error) {
    if (!(error instanceof TooLargeError)) throw error;
    throw new UnsupportedRepositoryError(`its index is larger than ${MAX_INDEX_BYTES} bytes`);
  }
}

/** Name of the branch in every view; its real name has no effect there. */
const VIEWED = 'viewed';
