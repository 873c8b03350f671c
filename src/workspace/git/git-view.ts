import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setBounded } from '../../bounded-map.js';
import { ServiceError } from '../../errors.js';
import { TooLargeError, type FileContent, type Folder } from '../folder.js';
import { SCRATCH } from '../segments.js';
import { Fields } from './fields.js';
import { checkObjects, inGitFolder, type Repository } from './repository.js';
import { requireGit } from './require-git.js';
import { GitFailedError, GIT_MS, runGit, type GitAnswer, type GitCall } from './run-git.js';
import { UnsupportedRepositoryError } from './unsupported.js';

/** Of some 500,000 files. Who reads one has others in memory. */
export const MAX_INDEX_BYTES = 48 * 1024 * 1024;
const MAX_LIST_BYTES = 1024 * 1024;
/** Of a row of the index: longer than any path that can be opened. */
const MAX_ROW_BYTES = 8 * 1024;

/** Milliseconds after which nobody is at work in a folder that was left. */
const LEFT_MS = 4 * GIT_MS;

const NULL_DEVICE = '/dev/null';

/** An entry of the index that is another repository. */
const SUBMODULE = '160000';

/** What git runs with besides where things are: no prompt, no program, no address of anybody's choice. */
const ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_SYSTEM: NULL_DEVICE,
  GIT_CONFIG_GLOBAL: NULL_DEVICE,
  GIT_ATTR_NOSYSTEM: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: 'false',
  GIT_SSH_COMMAND: 'false',
  GIT_EDITOR: 'false',
  GIT_PAGER: 'cat',
  GIT_ALLOW_PROTOCOL: 'none',
} as const;

/** Repositories may say whatever they like of these: this is what counts. */
const SETTINGS = `
[core]
  bare = false
  fileMode = true
  hooksPath = ${NULL_DEVICE}
  fsmonitor = false
  attributesFile = ${NULL_DEVICE}
  excludesFile = ${NULL_DEVICE}
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

/** One program of git's, in a view. */
export type Git = (
  args: readonly string[],
  options?: Pick<GitCall, 'cutAt' | 'input' | 'reads'> & {
    readonly env?: Readonly<Record<string, string>>;
    /** Exit codes that are no failure; 0 alone unless given. */
    readonly codes?: readonly number[];
  },
) => Promise<GitAnswer>;

export interface GitView {
  readonly git: Git;
  /** Where the view has its index, and the objects that are made in it. */
  readonly folder: string;
  readonly repository: Repository;
  /**
   * Waits for the checks of what the view was made of. Who changes something by it begins with that;
   * what others have found is not told when they fail.
   *
   * @throws UnsupportedRepositoryError
   */
  checked(): Promise<CheckedIndex>;
}

interface CheckedIndex {
  /** Paths that the index has as other repositories, a character a byte. */
  readonly submodules: ReadonlySet<string>;
}

/**
 * What git is given in the place of the repository's own folder: a temporary one with a configuration of
 * ours, the commit that HEAD names, a copy of the index, and the lists of what is ignored and of where
 * history was cut. From the repository itself it reads objects, and writes nothing. So no hook,
 * filter, driver, helper or address that is configured there exists for it.
 *
 * @param use is run beside the checks that take longest; what it has found counts once they are done.
 * @throws UnsupportedRepositoryError, GitFailedError; ServiceError after 30 s
 */
export async function withView<T>(
  place: WorkspacePlace,
  repository: Repository,
  signal: AbortSignal | undefined,
  use: (view: GitView) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(GIT_MS);
  await requireGit(place.path, late);
  const folder = await newFolder(place.views);
  const over = new AbortController();
  const ending = AbortSignal.any([late, over.signal, ...(signal ? [signal] : [])]);
  const atWork: Promise<unknown>[] = [];
  try {
    const indexed = await fill(folder, place, repository);
    const git = gitIn(folder, place, ending);
    const objects = inGitFolder(place.root, (each) => checkObjects(each, ending));
    const index = checkedIndex(git, `${repository.objectFormat} ${indexed}`);
    const checked = async () => {
      await objects;
      return index;
    };
    const used = use({ git, folder, repository, checked });
    atWork.push(objects, index, used);
    const [, , result] = await Promise.all([objects, index, used]);
    return result;
  } catch (error) {
    if (late.aborted && signal?.aborted !== true) {
      throw new ServiceError(500, `git was not done in ${GIT_MS / 1_000} s`, undefined, undefined, {
        cause: error,
      });
    }
    throw error;
  } finally {
    over.abort();
    await Promise.allSettled(atWork);
    await removeView(folder);
  }
}

async function newFolder(views: string): Promise<string> {
  const make = () => mkdtemp(path.join(views, `git-${process.pid}-`));
  return make().catch(async () => {
    await mkdir(views, { recursive: true, mode: 0o700 });
    return make();
  });
}

/** A git whose process group was killed, or that outlives who started it, may just write something there. */
const removeView = (folder: string): Promise<void> =>
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
      await removeView(folder);
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

/** @returns a hash of the index. */
async function fill(
  folder: string,
  { root }: WorkspacePlace,
  repository: Repository,
): Promise<string> {
  const { branch, head, objectFormat } = repository;
  const put = (name: string, content: string | Uint8Array) =>
    writeFile(path.join(folder, name), content);
  await Promise.all(
    ['objects', 'info', path.join('refs', 'heads')].map((name) =>
      mkdir(path.join(folder, name), { recursive: true }),
    ),
  );
  const [index, excluded, shallow] = await inGitFolder(root, (git) =>
    Promise.all([
      readIndex(git),
      git
        .stat('info')
        .then((info) =>
          info?.isDirectory()
            ? git.within(['info'], (info) => info.readIfThere('exclude', MAX_LIST_BYTES))
            : undefined,
        ),
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
  return createHash('sha256')
    .update(index?.bytes ?? '')
    .digest('base64');
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

function gitIn(folder: string, place: WorkspacePlace, signal: AbortSignal): Git {
  const objects = path.join(place.path, '.git', 'objects');
  const env = {
    ...ENVIRONMENT,
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    GIT_DIR: folder,
    GIT_WORK_TREE: place.path,
    GIT_INDEX_FILE: path.join(folder, 'index'),
    GIT_OBJECT_DIRECTORY: path.join(folder, 'objects'),
    // In quotes, where a colon does not part two of them.
    GIT_ALTERNATE_OBJECT_DIRECTORIES: `"${objects.replace(/["\\]/g, '\\$&')}"`,
  };
  return async (args, { codes = [0], env: more, ...options } = {}) => {
    const answer = await runGit({
      ...options,
      args,
      cwd: place.path,
      env: { ...env, ...more },
      signal,
    });
    if (answer.isCut || (answer.code !== null && codes.includes(answer.code))) return answer;
    throw new GitFailedError(`git ${args[0]} failed`, answer.said);
  };
}

/**
 * Git does not look at the names in an index that it reads: one that leads out of the workspace would be
 * compared, shown and staged as any other.
 */
async function checkedIndex(git: Git, key: string): Promise<CheckedIndex> {
  const known = CHECKED.get(key);
  if (known) return known;
  const submodules = new Set<string>();
  let leadsOut = false;
  const { read } = new Fields(MAX_ROW_BYTES, (row, isCut) => {
    const entry = row.toString('latin1');
    const name = entry.slice(entry.indexOf('\t') + 1);
    leadsOut ||= isCut || !isWithin(name);
    if (entry.startsWith(SUBMODULE)) submodules.add(name);
  });
  await git(['ls-files', '--stage', '-z'], { reads: read });
  if (leadsOut) throw new UnsupportedRepositoryError('its index leads out of it');
  if (submodules.size <= MAX_KEPT_SUBMODULES) setBounded(CHECKED, key, { submodules }, MAX_CHECKED);
  return { submodules };
}

/** What was found in indexes, by all that they are: most requests find the one of the request before. */
const CHECKED = new Map<string, CheckedIndex>();
const MAX_CHECKED = 16;
const MAX_KEPT_SUBMODULES = 100;

const isWithin = (name: string): boolean =>
  name.split('/').every((part) => part !== '' && !/^\.{1,2}$|^\.git$/i.test(part));
