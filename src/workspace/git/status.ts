import type { Git, GitView } from './git-view.js';

/** Changes that are told of. */
const MAX_CHANGES = 10_000;

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
  const changes = await changesOf(git, '--renames');
  return {
    isGitRepo: true,
    branch: repository.branch ?? 'HEAD',
    remote: shownRemote(repository.remote),
    changes: changes.slice(0, MAX_CHANGES).map(({ code, from, path }) => ({
      status: code.trim(),
      path: shown(path),
      ...(from !== undefined && { from: shown(from) }),
    })),
    ...(changes.length > MAX_CHANGES && { truncated: true }),
    hasChanges: changes.length > 0,
  };
}

/** A change whose paths are those of the file system, a character a byte. */
export interface CodedChange extends Omit<Change, 'status'> {
  /** Two characters. */
  readonly code: string;
}

/** What is not UTF-8 in it is replaced. */
const shown = (path: string): string => Buffer.from(path, 'latin1').toString();

/** What differs; other repositories within the workspace are never looked into. */
export async function changesOf(
  git: Git,
  renames: '--renames' | '--no-renames',
): Promise<CodedChange[]> {
  const { output } = await git([
    ...['status', '--porcelain=v1', '-z', '--untracked-files=all'],
    ...['--ignore-submodules=all', renames],
  ]);
  const entries = output.toString('latin1').split('\0');
  const changes: CodedChange[] = [];
  for (let at = 0; at < entries.length; at += 1) {
    const entry = entries[at] ?? '';
    if (entry === '') continue;
    const change = { code: entry.slice(0, 2), path: entry.slice(3) };
    const isMoved = /[RC]/.test(change.code);
    if (isMoved) at += 1;
    changes.push(isMoved ? { ...change, from: entries[at] ?? '' } : change);
  }
  return changes;
}

/** Without the name and password that an address may hold. */
export function shownRemote(remote: string | undefined): string | null {
  if (remote === undefined) return null;
  return remote.replace(/^([a-z][a-z0-9+.-]*:\/\/)?[^/]*@/i, '$1');
}
