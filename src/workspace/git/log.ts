import { StringDecoder } from 'node:string_decoder';
import { Fields } from './fields.js';
import type { GitView } from './git-view.js';

export const DEFAULT_LOG = 20;
export const MAX_LOG = 100;

/** Maximum bytes of a subject or name; longer ones are cut. */
const MAX_FIELD = 2_000;

/** Maximum bytes of git's output, long subjects included; commits after them are left out. */
const MAX_READ = 512 * 1024 * 1024;

const FIELDS = ['%H', '%h', '%s', '%an', '%aI', '%at', '%cI', '%ct'];

/** The date that git shows for a date that it cannot read. */
const UNKNOWN_DATE = '1970-01-01T00:00:00+00:00';

/** Last second that ISO 8601 can express with four digits for the year. */
const MAX_SECONDS = 253_402_300_799;

export interface Commit {
  readonly hash: string;
  readonly shortHash: string;
  readonly subject: string;
  readonly author: string;
  /** The author's date in ISO 8601, in the author's time zone; the committer's if there is none. */
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
    const [hash = '', shortHash = '', subject = '', author = '', ...dates] = fields.slice(at);
    const [authored = '', authoredS = '', committed = '', committedS = ''] = dates;
    const date = dateOf(authored, authoredS) ?? dateOf(committed, committedS) ?? UNKNOWN_DATE;
    commits.push({ hash, shortHash, subject, author, date });
  }
  return commits;
}

/** Returns the date as git prints it, or in UTC if its time zone does not exist; undefined if it is no date. */
function dateOf(text: string, seconds: string): string | undefined {
  if (seconds === '' || Number(seconds) > MAX_SECONDS) return undefined;
  if (/^\d{4}-.*[+-](?:[01]\d|2[0-3]):[0-5]\d$/.test(text)) return text;
  return new Date(Number(seconds) * 1_000).toISOString().replace('.000Z', '+00:00');
}
