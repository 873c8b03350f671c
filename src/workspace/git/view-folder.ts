import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { devNull } from 'node:os';
import path from 'node:path';
import { whenAllEnded } from '../../lib/when-all-ended.js';
import { TooLargeError, type FileContent, type Folder } from '../files/folder.js';
import { SCRATCH } from '../files/segments.js';
import { inGitFolder, type Repository } from './repository.js';
import { GIT_MS } from './run-git.js';
import { UnsupportedRepositoryError } from './unsupported.js';

/** Of some 500,000 files. Who reads one has others in memory. */
export const MAX_INDEX_BYTES = 48 * 1024 * 1024;
const MAX_LIST_BYTES = 1024 * 1024;

/** Milliseconds after which nobody is at work in a folder, which is marked each time that it is used. */
const LEFT_MS = 4 * GIT_MS;

/** Repositories may say whatever they like of these: this is what counts. */
const SETTINGS = `
[core]
  bare = false
  fileMode = true
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

/** Where a workspace lies, and where its views are made: outside of it, out of everybody's reach. */
export interface WorkspacePlace {
  readonly root: Folder;
  readonly path: string;
  readonly views: string;
}

/** A view's folder. */
export interface ViewFolder {
  readonly path: string;
  /** A hash of the index that it has. */
  readonly indexed: string;
  readonly indexBytes: number;
}

export interface LentFolder extends ViewFolder {
  /** @param isWell whether all went well with it. */
  release(isWell: boolean): Promise<void>;
}

/** Gives a view its folder. */
export type LendFolder = (place: WorkspacePlace, repository: Repository) => Promise<LentFolder>;

/** One of the view's own. */
export const ownFolder: LendFolder = async (place, repository) =>
  lentOnce(await makeFolder(place, repository));

/** It goes with its view. */
export const lentOnce = (folder: ViewFolder): LentFolder => ({
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

/** Says that it is at work, to who begins beside us. @returns false when somebody has removed it. */
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

/** A git whose process group was killed, or that outlives who started it, may just write something there. */
const remove = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });

/** Removes views that were left by processes that are gone. */
export async function clearViews(views: string): Promise<void> {
  const names = await readdir(views).catch(() => []); // none have been made
  for (const name of names) {
    const pid = Number(/^git-(\d+)-/.exec(name)?.[1]);
    if (Number.isNaN(pid)) continue;
    const folder = path.join(views, name);
    const made = await stat(folder).catch(() => undefined); // somebody else has removed it
    const isOld = made !== undefined && Date.now() - made.mtimeMs > LEFT_MS;
    // With our own number it was another process, because this one has only begun.
    if (isOld || pid === process.pid || !isRunning(pid)) {
      await remove(folder);
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // or it is another user's, and so not the one that was
  }
}

async function fill(
  folder: string,
  { root }: WorkspacePlace,
  repository: Repository,
): Promise<Pick<ViewFolder, 'indexed' | 'indexBytes'>> {
  const { branch, head, objectFormat } = repository;
  const put = (name: string, content: string | Uint8Array) =>
    writeFile(path.join(folder, name), content);
  await Promise.all(
    ['objects', 'info', path.join('refs', 'heads')].map((name) =>
      mkdir(path.join(folder, name), { recursive: true }),
    ),
  );
  const [index, excluded, shallow] = await inGitFolder(root, (git) =>
    whenAllEnded([
      readIndex(git),
      inInfo(git, (info) => info.readIfThere('exclude', MAX_LIST_BYTES)),
      git.readIfThere('shallow', MAX_LIST_BYTES),
    ]),
  );
  const version = objectFormat === 'sha1' ? 0 : 1;
  await Promise.all([
    put(
      'config',
      `${SETTINGS}[core]\n  repositoryFormatVersion = ${version}\n` +
        (version === 1 ? `[extensions]\n  objectFormat = ${objectFormat}\n` : ''),
    ),
    put('HEAD', branch === undefined ? `${head}\n` : `ref: refs/heads/${VIEWED}\n`),
    branch !== undefined && head !== undefined && put(`refs/heads/${VIEWED}`, `${head}\n`),
    put(
      'info/exclude',
      Buffer.concat([excluded?.bytes ?? Buffer.alloc(0), Buffer.from(`\n/${SCRATCH}/\n`)]),
    ),
    shallow && put('shallow', shallow.bytes),
    index && put('index', index.bytes),
  ]);
  // By the age of the index git tells what may have changed since.
  if (index) await utimes(path.join(folder, 'index'), index.modified, index.modified);
  const bytes = index?.bytes ?? Buffer.alloc(0);
  return {
    indexed: createHash('sha256').update(bytes).digest('base64'),
    indexBytes: bytes.length,
  };
}

/** What is found in the folder of lists, if there is one. */
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

/** The branch's name in a view, where it does not matter. */
const VIEWED = 'viewed';
