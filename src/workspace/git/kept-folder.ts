import type { Stats } from 'node:fs';
import { isSettled, stateOf } from './file-state.js';
import { inGitFolder, type Repository } from './repository.js';
import { allSettledOrThrow } from '../../lib/when-all-ended.js';
import {
  inInfo,
  LISTS,
  lentOnce,
  makeFolder,
  markAtWork,
  removeFolder,
  type LeaseFolder,
  type LeasedFolder,
  type ViewFolder,
  type WorkspacePlace,
} from './view-folder.js';

/** Milliseconds for which an unused folder is kept for the next request. */
const KEPT_MS = 10_000;

/** Maximum number of bytes of an index of about 40,000 files; leaves room for writers. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

interface Kept {
  readonly folder: ViewFolder;
  /** State of the files that the folder was made from. */
  readonly state: string;
  users: number;
}

/** The previous view's folder, shared by reading views until the files it was made from change. */
export class ViewFolderCache {
  #kept: Kept | undefined;
  #expiry: NodeJS.Timeout | undefined;

  readonly lend: LeaseFolder = async (place, repository) => {
    // Read before the files: after a change during the read, the next request finds another state.
    const state = await stateFor(place, repository);
    const kept = this.#kept;
    if (kept && kept.state === state) {
      const lent = this.#lent(kept);
      if (await markAtWork(kept.folder)) return lent;
      await lent.release(false);
    }
    const folder = await makeFolder(place, repository);
    if (state === undefined || folder.indexBytes > MAX_KEPT_BYTES) {
      return lentOnce(folder);
    }
    const made = { folder, state, users: 0 };
    const lent = this.#lent(made);
    try {
      await this.#keep(made);
    } catch (error) {
      // The previous folder could not be removed.
      await lent.release(false);
      throw error;
    }
    return lent;
  };

  #lent(kept: Kept): LeasedFolder {
    kept.users += 1;
    return {
      ...kept.folder,
      release: async (isWell) => {
        kept.users -= 1;
        if (this.#kept !== kept) return removeUnused(kept);
        if (!isWell) return this.#keep(undefined);
        clearTimeout(this.#expiry);
        // A folder that cannot be removed now is removed at the next start.
        this.#expiry = setTimeout(() => void this.#keep(undefined).catch(() => undefined), KEPT_MS);
        this.#expiry.unref();
      },
    };
  }

  async #keep(kept: Kept | undefined): Promise<void> {
    const before = this.#kept;
    this.#kept = kept;
    if (before) await removeUnused(before);
  }
}

/** The last user removes a replaced folder. */
const removeUnused = async ({ folder, users }: Kept): Promise<void> => {
  if (users === 0) await removeFolder(folder);
};

/** Returns the state of the files that a view is made from, or undefined if some have just changed. */
async function stateFor(
  { root }: WorkspacePlace,
  { branch, comparison, head, objectFormat }: Repository,
): Promise<string | undefined> {
  const [index, lists = [], shallow] = await inGitFolder(root, (git) =>
    allSettledOrThrow([
      git.stat('index'),
      inInfo(git, (info) => allSettledOrThrow(LISTS.map((name) => info.stat(name)))),
      git.stat('shallow'),
    ]),
  );
  const files = [index, shallow, ...lists];
  if (!files.every((file) => file === undefined || isSettled(file))) return undefined;
  const states = files.map((file: Stats | undefined) => file && stateOf(file));
  return JSON.stringify([branch, comparison, head, objectFormat, ...states]);
}
