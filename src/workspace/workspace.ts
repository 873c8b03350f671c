import { join } from 'node:path';
import { BadRequestError, ConflictError, NotFoundError, ServiceError } from '../lib/errors.js';
import { FairLimiter } from '../lib/fair-limiter.js';
import { appendFile, readFile, writeFile, type ReadFile, type StoredFile } from './files/files.js';
import { clearScratch, Folder } from './files/folder.js';
import { diffOf, type Diff } from './git/diff.js';
import { withView, type GitView } from './git/git-view.js';
import { ViewFolderCache } from './git/kept-folder.js';
import { logOf, type Commit } from './git/log.js';
import { originOf, pushCommit, type Remotes } from './git/push.js';
import { findRepository } from './git/repository.js';
import { GIT_MS } from './git/run-git.js';
import { statusOf, type Status } from './git/status.js';
import {
  clearLocks,
  commitAll,
  DEFAULT_MESSAGE,
  NOTHING_TO_COMMIT,
  type Committed,
} from './git/sync.js';
import { clearViews, type WorkspacePlace } from './git/view-folder.js';
import {
  listMemory,
  searchMemory,
  type MemoryListing,
  type MemoryMatch,
} from './memory/memory-listing.js';
import { runWithDeadline } from './run-with-deadline.js';
import { segmentsOf } from './files/segments.js';
import { treeOf, type TreeNode } from './files/tree.js';

/** Maximum number of requests with git work at a time; one workspace may have half of them. */
const GIT_AT_ONCE = 4;

export const SYNCING = 'Another sync of this workspace is under way';

const MOVED = 'The branch was moved by another program: sync again';

export interface Pushed {
  readonly pushed: boolean;
  /** Reason of a failed push. If missing, origin exists but is unreachable from where the commit was made. */
  readonly pushError?: string;
}

export interface Synced extends Pushed {
  readonly committed: boolean;
  /** Hash of the commit, or of HEAD if there was nothing to commit; null before the first commit. */
  readonly hash: string | null;
  readonly message: string;
}

/** A written file. A host of the previous release reports neither time nor etag. */
export type WrittenFile = Pick<StoredFile, 'path' | 'size'> & Partial<StoredFile>;

interface Writable {
  write(path: string, content: string, options?: WriteOptions): Promise<WrittenFile>;
}

/** The files of one folder and their git state, local or remote. */
export type Files = Pick<
  Workspace,
  'tree' | 'read' | 'gitStatus' | 'gitDiff' | 'gitLog' | 'gitSync'
> &
  Writable;

/** The files of an agent's memory, local or remote. */
export type Memory = Pick<Workspace, 'read' | 'append' | 'memoryFiles' | 'findInMemory'> & Writable;

export interface WriteOptions {
  /** The etag that the file must have. */
  readonly etag?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface WorkspaceParts {
  /** Absolute path of the folder, which is created at its first use. */
  readonly path: string;
  /** Folder names from `path` to the workspace, if someone who may create links owns that part. */
  readonly within?: readonly string[];
  /** Folder for git's temporary folders, outside of every workspace. */
  readonly views: string;
  /** Access to remotes; without it a commit waits for `gitPush` from a process that has access. */
  readonly remotes?: Remotes;
  /** Milliseconds until the push of a sync is given up. */
  readonly pushMs?: number;
}

/**
 * The files of one folder and their git state. Methods accept unchecked input and throw ServiceErrors:
 * 400 for invalid input, 404 for missing files.
 */
export class Workspace {
  readonly #parts: WorkspaceParts;
  readonly #limiter = new FairLimiter({ atOnce: GIT_AT_ONCE });
  readonly #kept = new ViewFolderCache();
  /** Changes of one file take turns, so that an etag names what the change replaces. */
  readonly #turns = new FairLimiter({ atOnce: Infinity, perOwner: 1 });
  #isSyncing = false;
  #cleared: Promise<void> | undefined;

  constructor(parts: WorkspaceParts) {
    this.#parts = parts;
  }

  tree(depth: number, signal?: AbortSignal): Promise<TreeNode> {
    return this.#in(({ root }) => treeOf(root, depth, signal));
  }

  read(path: string): Promise<ReadFile> {
    return this.#in(({ root }) => readFile(root, path));
  }

  write(path: string, content: string, options?: WriteOptions): Promise<StoredFile> {
    return this.#change(path, (root) => writeFile(root, path, content, options));
  }

  /** Appends to a file, without losing what the agent writes at the same time. */
  append(path: string, content: string, options?: WriteOptions): Promise<StoredFile> {
    return this.#change(path, (root) => appendFile(root, path, content, options));
  }

  memoryFiles(signal?: AbortSignal): Promise<MemoryListing> {
    return this.#in(({ root }) => listMemory(root, signal));
  }

  findInMemory(query: string, signal?: AbortSignal): Promise<readonly MemoryMatch[]> {
    return this.#in(({ root }) => searchMemory(root, query, signal));
  }

  gitStatus(signal?: AbortSignal): Promise<Status | { readonly isGitRepo: false }> {
    return this.#git(statusOf, signal).then((status) => status ?? { isGitRepo: false });
  }

  /** Returns the differences. @param path limits them to this path. */
  async gitDiff(path?: string, signal?: AbortSignal): Promise<Diff> {
    const paths = path === undefined ? [] : [segmentsOf(path).join('/')];
    return orNoRepository(await this.#git((view) => diffOf(view, paths), signal));
  }

  async gitLog(limit: number, signal?: AbortSignal): Promise<readonly Commit[]> {
    return orNoRepository(await this.#git((view) => logOf(view, limit), signal));
  }

  /**
   * Commits all changes and, if remotes are reachable from here, pushes; a failed push keeps the commit.
   * @throws ServiceError (500) if there is no repository, or the commit fails, ConflictError while another sync
   * of this workspace is in flight
   */
  async gitSync(message = DEFAULT_MESSAGE, signal?: AbortSignal): Promise<Synced> {
    if (message.includes('\0') || /\p{Surrogate}/u.test(message)) {
      throw new BadRequestError('message must be well-formed text');
    }
    if (this.#isSyncing) throw new ConflictError(SYNCING, 'SYNC_IN_FLIGHT');
    this.#isSyncing = true;
    const late = AbortSignal.timeout(this.#parts.pushMs ?? GIT_MS);
    try {
      return await this.#in(async (place) => {
        const text = message.trim() === '' ? DEFAULT_MESSAGE : message;
        const made = await commitAll(place, text, signal);
        if (made.hash === undefined) {
          const hash = made.head ?? null;
          return { committed: false, pushed: false, hash, message: NOTHING_TO_COMMIT };
        }
        const { hash } = made;
        const pushed = await this.#push(place, { ...made, hash }, { late, signal });
        return { committed: true, ...pushed, hash, message: text };
      });
    } catch (error) {
      throw syncFailure(error);
    } finally {
      this.#isSyncing = false;
    }
  }

  /** Pushes the branch to origin if it is at a sync's commit; writes nothing to the workspace. */
  async gitPush(hash: string, signal?: AbortSignal): Promise<Pushed> {
    const late = AbortSignal.timeout(this.#parts.pushMs ?? GIT_MS);
    const ending = signal ? AbortSignal.any([late, signal]) : late;
    return this.#open(async (place) => {
      const repository = await findRepository(place.root, place.path, ending);
      if (repository?.head !== hash) return { pushed: false, pushError: MOVED };
      return this.#push(place, { ...repository, hash }, { late, signal });
    });
  }

  /** Removes what killed processes left; runs once. */
  clear(): Promise<void> {
    this.#cleared ??= this.#open(async (place) => {
      await clearViews(place.views);
      await clearScratch(place.root);
      await clearLocks(place.root);
    }).catch((error: unknown) => {
      this.#cleared = undefined; // the next request retries
      throw error;
    });
    return this.#cleared;
  }

  async #push(
    place: WorkspacePlace,
    { branch, hash, remote }: Committed & { readonly hash: string },
    ends: Pick<Parameters<typeof pushCommit>[2], 'late' | 'signal'>,
  ): Promise<Pushed> {
    const origin = originOf({ branch, remote });
    if (typeof origin === 'string') return { pushed: false, pushError: origin };
    const { remotes } = this.#parts;
    if (!remotes) return { pushed: false };
    const pushError = await pushCommit(place, { ...origin, hash }, { ...ends, remotes });
    return pushError === undefined ? { pushed: true } : { pushed: false, pushError };
  }

  #git<T>(use: (view: GitView) => Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
    return runWithDeadline(this.#limiter, { owner: this.#parts.path, signal }, (ending) =>
      this.#in(async (place) => {
        const repository = await findRepository(place.root, place.path, ending);
        return repository && withView(place, repository, ending, use, this.#kept.lend);
      }),
    );
  }

  #change<T>(path: string, change: (root: Folder) => Promise<T>): Promise<T> {
    return this.#turns.run({ owner: path }, () => this.#in(({ root }) => change(root)));
  }

  async #in<T>(use: (place: WorkspacePlace) => Promise<T>): Promise<T> {
    await this.clear();
    return this.#open(use);
  }

  async #open<T>(use: (place: WorkspacePlace) => Promise<T>): Promise<T> {
    const { path, views, within = [] } = this.#parts;
    const base = await Folder.root(path);
    try {
      const place = { path: join(path, ...within), views };
      return await base.within(within, (root) => use({ root, ...place }), { makes: true });
    } finally {
      await base.close();
    }
  }
}

/** Returns a 500 in place of a refusal of the repository, which only other requests answer with 400 (spec 4.14). */
function syncFailure(error: unknown): unknown {
  if (!(error instanceof BadRequestError || error instanceof NotFoundError)) return error;
  const { code, facts, message } = error;
  return new ServiceError(500, message, code, facts, { cause: error });
}

function orNoRepository<T>(found: T | undefined): T {
  if (found === undefined) throw new BadRequestError('Not a git repository');
  return found;
}
