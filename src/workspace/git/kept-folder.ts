import type { Stats } from 'node:fs';
import { isSettled, stateOf } from './file-state.js';
import { inGitFolder, type Repository } from './repository.js';
import { whenAllEnded } from '../../lib/when-all-ended.js';
import {
  inInfo,
  lentOnce,
  makeFolder,
  markAtWork,
  removeFolder,
  type LendFolder,
  type LentFolder,
  type ViewFolder,
  type WorkspacePlace,
} from './view-folder.js';

/** Milliseconds that one is kept for who asks next. */
const KEPT_MS = 10_000;

/** Of an index of some 40,000 files: whoever writes has room besides. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

interface Kept {
  readonly folder: ViewFolder;
  /** What it was made from. */
  readonly state: string;
  users: number;
}

/**
 * The folder of the view before, for those that only read: as long as all that it was made from is as it
 * was, they share it.
 */
export class KeptFolder {
  #kept: Kept | undefined;
  #expiry: NodeJS.Timeout | undefined;

  readonly lend: LendFolder = async (place, repository) => {
    // Before it is read: what changes meanwhile has another state when the next one asks.
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
      // The one before could not be removed.
      await lent.release(false);
      throw error;
    }
    return lent;
  };

  #lent(kept: Kept): LentFolder {
    kept.users += 1;
    return {
      ...kept.folder,
      release: async (isWell) => {
        kept.users -= 1;
        if (this.#kept !== kept) return removeUnused(kept);
        if (!isWell) return this.#keep(undefined);
        clearTimeout(this.#expiry);
        // What cannot be removed then, the next start removes.
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

/** Whoever uses it last removes it. */
const removeUnused = async ({ folder, users }: Kept): Promise<void> => {
  if (users === 0) await removeFolder(folder);
};

/** Undefined when some of it has just changed. */
async function stateFor(
  { root }: WorkspacePlace,
  { branch, head, objectFormat }: Repository,
): Promise<string | undefined> {
  const files = await inGitFolder(root, (git) =>
    whenAllEnded([
      git.stat('index'),
      inInfo(git, (info) => info.stat('exclude')),
      git.stat('shallow'),
    ]),
  );
  if (!files.every((file) => file === undefined || isSettled(file))) return undefined;
  const states = files.map((file: Stats | undefined) => file && stateOf(file));
  return JSON.stringify([branch, head, objectFormat, ...states]);
}
