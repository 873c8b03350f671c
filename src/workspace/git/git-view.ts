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
import { ownFolder, type LendFolder, type WorkspacePlace } from './view-folder.js';

/** Of a row of the index: longer than any path that can be opened. */
const MAX_ROW_BYTES = 8 * 1024;

/** An entry of the index that is another repository. */
const SUBMODULE = '160000';

/** What git runs with besides where things are: no prompt, no program, no address of anybody's choice. */
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
 * @param lend gives it its folder, which `use` writes nothing to unless it is its own.
 * @throws UnsupportedRepositoryError, GitFailedError; ServiceError after 30 s
 */
export async function withView<T>(
  place: WorkspacePlace,
  repository: Repository,
  signal: AbortSignal | undefined,
  use: (view: GitView) => Promise<T>,
  lend: LendFolder = ownFolder,
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
      throw new ServiceError(500, `git was not done in ${GIT_MS / 1_000} s`, undefined, undefined, {
        cause: error,
      });
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
