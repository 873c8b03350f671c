import { StringDecoder } from 'node:string_decoder';
import { Fields } from './fields.js';
import type { GitView } from './git-view.js';

export const DEFAULT_LOG = 20;
export const MAX_LOG = 100;

/** Most bytes of a subject or name; longer ones are cut. */
const MAX_FIELD = 2_000;

/** Most bytes of git's output, long subjects included; commits after them are left out. */
const MAX_READ = 512 * 1024 * 1024;

const FIELDS = ['%H', '%h', '%s', '%an', '%aI'];

export interface Commit {
  readonly hash: string;
  readonly shortHash: string;
  readonly subject: string;
  readonly author: string;
  /** Date in ISO 8601, in the author's time zone. */
  readonly date: string;
}

/** Returns the latest commits, newest first. */
export async function logOf({ git, repository }: GitView, limit: number): Promise<Commit[]> {
  if (repository.head === undefined) return [];
  const fields: string[] = [];
  // The decoder drops a partial character at the cut.
  const { read } = new Fields(MAX_FIELD, (field, isCut) =>
    fields.push(isCut ? new StringDecoder('utf8').write(field) : field.toString()),
  );
  await git(
    [
      ...['log', '-z', '--no-mailmap', '--no-show-signature', '--no-decorate', '--no-color'],
      ...[`--max-count=${Math.min(limit, MAX_LOG)}`, `--format=${FIELDS.join('%x00')}`],
      ...[repository.head, '--'],
    ],
    { reads: read, cutAt: MAX_READ },
  );
  const commits: Commit[] = [];
  for (let at = 0; at + FIELDS.length <= fields.length; at += FIELDS.length) {
    const [hash = '', shortHash = '', subject = '', author = '', date = ''] = fields.slice(at);
    commits.push({ hash, shortHash, subject, author, date });
  }
  return commits;
}
