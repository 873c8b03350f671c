import { ListingRoom } from '../files/listing.js';
import type { Git, GitView } from './git-view.js';

/** Bytes of git's that are read of a status: more than is told of. */
const MAX_READ = 4 * 1024 * 1024;

export interface Change {
  /** The two letters of `git status --porcelain`, trimmed. */
  readonly status: string;
  readonly path: string;
  /** What a renamed or copied file was called before. */
  readonly from?: string;
}

export interface Status {
  readonly isGitRepo: true;
  /** `HEAD` when no branch is checked out. */
  readonly branch: string;
  readonly remote: string | null;
  readonly changes: readonly Change[];
  /** There are more changes than are told of. */
  readonly truncated?: true;
  readonly hasChanges: boolean;
}

export async function statusOf({ git, repository }: GitView): Promise<Status> {
  const { changes, isCut } = await changesOf(git, '--renames', MAX_READ);
  const room = new ListingRoom();
  const told: Change[] = [];
  for (const { code, from, path } of changes) {
    const row = {
      status: code.trim(),
      path: shown(path),
      ...(from !== undefined && { from: shown(from) }),
    };
    if (!room.take(row)) break;
    told.push(row);
  }
  return {
    isGitRepo: true,
    branch: repository.branch ?? 'HEAD',
    remote: shownRemote(repository.remote),
    changes: told,
    ...((isCut || told.length < changes.length) && { truncated: true }),
    hasChanges: isCut || changes.length > 0,
  };
}

/** A change whose paths are those of the file system, a character a byte. */
export interface CodedChange extends Omit<Change, 'status'> {
  /** Two characters. */
  readonly code: string;
}

/** What is not UTF-8 in it is replaced. */
const shown = (path: string): string => Buffer.from(path, 'latin1').toString();

/**
 * What differs; other repositories within the workspace are never looked into.
 *
 * @param cutAt bytes of git's answer after which it is cut. Without it, more is a failure.
 */
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
  // What comes after the last end of one is none, or half of one.
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

/** Without the name and password that an address may hold. */
export function shownRemote(remote: string | undefined): string | null {
  if (remote === undefined) return null;
  return remote.replace(/^([a-z][a-z0-9+.-]*:\/\/)?[^/]*@/i, '$1');
}
