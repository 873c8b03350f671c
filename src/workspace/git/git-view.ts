import { devNull } from 'node:os';
import path from 'node:path';
import { setBounded } from '../../lib/bounded-map.js';
import { ServiceError } from '../../lib/errors.js';
import { Fields } from './fields.js';
import { checkObjects } from './objects.js';
import { inGitFolder, type Repository } from './repository.js';
import { requireGit } from './require-git.js';
import { GitFailedError, GIT_MS, runGit, type GitAnswer, type GitCall } from './run-git.js';
import { UnsupportedRepositoryError } from './unsupported.js';
import { ownFolder, type LeaseFolder, type WorkspacePlace } from './view-folder.js';

/** Maximum bytes of a row of the index: longer than any path that can be opened. */
const MAX_ROW_BYTES = 8 * 1024;

/** File mode of an index entry that is another repository. */
const SUBMODULE = '160000';

/** Environment of git besides its paths: no prompts, no configured programs or addresses. */
const ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_SYSTEM: devNull,
  GIT_CONFIG_GLOBAL: devNull,
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

/** Runs one git command in a view. */
export type Git = (
  args: readonly string[],
  options?: Pick<GitCall, 'cutAt' | 'input' | 'reads'> & {
    readonly env?: Readonly<Record<string, string>>;
    /** Exit codes that count as success; default: only 0. */
    readonly codes?: readonly number[];
  },
) => Promise<GitAnswer>;

export interface GitView {
  readonly git: Git;
  /** The folder of the view's index, and of the objects created in it. */
  readonly folder: string;
  readonly repository: Repository;
  /**
   * Waits for the checks of the files that the view was made from. Call it before any change; if the checks
   * fail, results of concurrent work are discarded.
   * @throws UnsupportedRepositoryError
   */
  checked(): Promise<CheckedIndex>;
}

interface CheckedIndex {
  /** Paths of submodules in the index, one character for each byte. */
  readonly submodules: ReadonlySet<string>;
}

/**
 * Runs git on a view, a folder in place of the repository's own: our configuration, HEAD's commit, and copies
 * of the index, the lists in `info` and the shallow list. Git only reads objects from the repository, so no hook, filter,
 * driver, helper or address configured there takes effect.
 * @param use runs beside the slowest checks; its result counts once they pass.
 * @throws UnsupportedRepositoryError, GitFailedError; ServiceError after 30 s
 */
export async function withView<T>(
  place: WorkspacePlace,
  repository: Repository,
  signal: AbortSignal | undefined,
  use: (view: GitView) => Promise<T>,
  lend: LeaseFolder = ownFolder,
): Promise<T> {
  const late = AbortSignal.timeout(GIT_MS);
  await requireGit(place.path, late);
  const lent = await lend(place, repository);
  const over = new AbortController();
  const ending = AbortSignal.any([late, over.signal, ...(signal ? [signal] : [])]);
  const atWork: Promise<unknown>[] = [];
  let isWell = false;
  try {
    const git = gitIn(lent.path, place, ending);
    const objects = inGitFolder(place.root, (each) => checkObjects(each, ending));
    const index = checkedIndex(git, `${repository.objectFormat} ${lent.indexed}`);
    const checked = async () => {
      await objects;
      return index;
    };
    const used = use({ git, folder: lent.path, repository, checked });
    atWork.push(objects, index, used);
    const [, , result] = await Promise.all([objects, index, used]);
    isWell = true;
    return result;
  } catch (error) {
    if (late.aborted && signal?.aborted !== true) {
      throw new ServiceError(
        500,
        `git did not finish within ${GIT_MS / 1_000} s`,
        undefined,
        undefined,
        { cause: error },
      );
    }
    throw error;
  } finally {
    over.abort();
    await Promise.allSettled(atWork);
    await lent.release(isWell);
  }
}

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
    // Quoted, so that a colon in a path is not a separator.
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
    throw new GitFailedError(`git ${args[0]} failed`, answer.stderr);
  };
}

/** Checks an index's names, which git does not: it would also stage a file outside the workspace. */
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
  if (leadsOut) throw new UnsupportedRepositoryError('its index has paths outside of it');
  if (submodules.size <= MAX_KEPT_SUBMODULES) setBounded(CHECKED, key, { submodules }, MAX_CHECKED);
  return { submodules };
}

/** Results of index checks by the index's state: most requests have the previous request's index. */
const CHECKED = new Map<string, CheckedIndex>();
const MAX_CHECKED = 16;
const MAX_KEPT_SUBMODULES = 100;

const isWithin = (name: string): boolean =>
  name.split('/').every((part) => part !== '' && !/^\.{1,2}$|^\.git$/i.test(part));
