import type { GitView } from './git-view.js';

export const DEFAULT_LOG = 20;
export const MAX_LOG = 100;

const FIELDS = ['%H', '%h', '%s', '%an', '%aI'];

export interface Commit {
  readonly hash: string;
  readonly shortHash: string;
  readonly subject: string;
  readonly author: string;
  /** ISO 8601, in the author's time zone. */
  readonly date: string;
}

/** The newest commits, newest first. */
export async function logOf({ git, repository }: GitView, limit: number): Promise<Commit[]> {
  if (repository.head === undefined) return [];
  const { output } = await git([
    ...['log', '-z', '--no-mailmap', '--no-show-signature', '--no-decorate', '--no-color'],
    ...[`--max-count=${Math.min(limit, MAX_LOG)}`, `--format=${FIELDS.join('%x00')}`],
    ...[repository.head, '--'],
  ]);
  const fields = output.toString().split('\0');
  const commits: Commit[] = [];
  for (let at = 0; at + FIELDS.length <= fields.length; at += FIELDS.length) {
    const [hash = '', shortHash = '', subject = '', author = '', date = ''] = fields.slice(at);
    commits.push({ hash, shortHash, subject, author, date });
  }
  return commits;
}
