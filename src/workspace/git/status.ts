import { ListingRoom } from '../files/listing.js';
import type { Git, GitView } from './git-view.js';

/** Maximum bytes of `git status` that are read: more than is shown. */
const MAX_READ = 4 * 1024 * 1024;

export interface Change {
  /** The two letters of `git status --porcelain`, trimmed. */
  readonly status: string;
  readonly path: string;
  /** Previous path of a renamed or copied file. */
  readonly from?: string;
}

export interface Status {
  readonly isGitRepo: true;
  /** Branch name; `HEAD` if no branch is checked out. */
  readonly branch: string;
  readonly remote: string | null;
  readonly changes: readonly Change[];
  /** True if there are more changes than listed. */
  readonly truncated?: true;
  readonly hasChanges: boolean;
}

export async function statusOf({ git, repository }: GitView): Promise<Status> {
  const { changes, isCut } = await changesOf(git, '--renames', MAX_READ);
  const room = new ListingRoom();
  const listed: Change[] = [];
  for (const { code, from, path } of changes) {
    const row = {
      status: code.trim(),
      path: shown(path),
      ...(from !== undefined && { from: shown(from) }),
    };
    if (!room.take(row)) break;
    listed.push(row);
  }
  return {
    isGitRepo: true,
    branch: repository.branch ?? 'HEAD',
    remote: shownRemote(repository.remote),
    changes: listed,
    ...((isCut || listed.length < changes.length) && { truncated: true }),
    hasChanges: isCut || changes.length > 0,
  };
}

/** A change with paths as the file system has them, one character for each byte. */
export interface CodedChange extends Omit<Change, 'status'> {
  /** Two-character status code. */
  readonly code: string;
}

/** Decodes a path for display; invalid UTF-8 is replaced. */
const shown = (path: string): string => Buffer.from(path, 'latin1').toString();

/** Returns the changes except submodules'; `cutAt` bytes cut git's output instead of failing. */
export async function changesOf(
  git: Git,
  renames: '--renames' | '--no-renames',
  cutAt?: number,
): Promise<{ readonly changes: readonly CodedChange[]; readonly isCut: boolean }> {
  const { isCut, output } = await git(
    [
      ...['status', '--porcelain=v1', '-z', '--untracked-files=all'],
      ...['--ignore-submodules=all', renames],
    ],
    { cutAt },
  );
  // The last piece is empty, or an entry that was cut.
  const entries = output.toString('latin1').split('\0').slice(0, -1);
  const changes: CodedChange[] = [];
  for (let at = 0; at < entries.length; at += 1) {
    const entry = entries[at] ?? '';
    const change = { code: entry.slice(0, 2), path: entry.slice(3) };
    if (!/[RC]/.test(change.code)) {
      changes.push(change);
      continue;
    }
    at += 1;
    const from = entries[at];
    if (from !== undefined) changes.push({ ...change, from });
  }
  return { changes, isCut };
}

/** Returns the remote's address without the login that it may hold. */
export function shownRemote(remote: string | undefined): string | null {
  if (remote === undefined) return null;
  return remote.replace(/^([a-z][a-z0-9+.-]*:\/\/)?[^/]*@/i, '$1');
}
