import { createHash } from 'node:crypto';
import { setBounded } from '../../lib/bounded-map.js';
import { UnsupportedRepositoryError } from './unsupported.js';
import { runGit } from './run-git.js';

/** What is taken from a repository's configuration; all else in it is as if it were not there. */
export interface RepositoryFacts {
  readonly objectFormat: 'sha1' | 'sha256';
  readonly author: { readonly name?: string; readonly email?: string };
  /** Where origin is, as it stands there. */
  readonly remote: string | undefined;
}

/** Ways to keep a repository that we know: with any other one, git itself would not touch it. */
const EXTENSIONS: Readonly<Record<string, (value: string) => boolean>> = {
  'extensions.noop': () => true,
  'extensions.objectformat': (value) => value === 'sha1' || value === 'sha256',
  'extensions.partialclone': () => true,
  'extensions.preciousobjects': () => true,
  'extensions.refstorage': (value) => value === 'files',
  'extensions.worktreeconfig': () => true,
};

const MAX_NAME = 200;
const MAX_REMOTE = 2_000;

const KNOWN = new Map<string, RepositoryFacts>();
const MAX_KNOWN = 100;

/**
 * Reads a configuration as data: git takes it from its input, where it includes nothing.
 *
 * @throws UnsupportedRepositoryError
 */
export async function factsOf(
  config: Uint8Array,
  cwd: string,
  signal: AbortSignal,
): Promise<RepositoryFacts> {
  const key = createHash('sha256').update(config).digest('base64');
  const known = KNOWN.get(key);
  if (known) return known;
  const { code, output } = await runGit({
    args: ['config', '--file', '-', '--no-includes', '--null', '--list'],
    cwd,
    // A folder that is none: no repository is looked for, nor its configuration.
    env: { GIT_DIR: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
    input: config,
    signal,
  });
  if (code !== 0) throw new UnsupportedRepositoryError('its configuration cannot be read');
  const facts = readFacts(valuesOf(output.toString()));
  setBounded(KNOWN, key, facts, MAX_KNOWN);
  return facts;
}

function readFacts(values: readonly (readonly [string, string])[]): RepositoryFacts {
  for (const [name, value] of values) {
    if (!name.startsWith('extensions.')) continue;
    if (EXTENSIONS[name]?.(value) !== true) {
      throw new UnsupportedRepositoryError('it is kept in a way that is not known here');
    }
  }
  const last = (name: string) => values.findLast(([each]) => each === name)?.[1];
  const name = personal(last('user.name'));
  const email = personal(last('user.email'));
  // Of several addresses git pushes to the first one first.
  const remote = values.find(([each]) => each === 'remote.origin.url')?.[1];
  return {
    objectFormat: last('extensions.objectformat') === 'sha256' ? 'sha256' : 'sha1',
    author: { ...(name && { name }), ...(email && { email }) },
    remote: remote !== undefined && remote.length <= MAX_REMOTE ? remote : undefined,
  };
}

/** Of `name\nvalue\0`; a name alone means that it is true. */
function valuesOf(list: string): (readonly [string, string])[] {
  return list
    .split('\0')
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [name = '', ...value] = entry.split('\n');
      return [name, value.join('\n')] as const;
    });
}

/** Without what ends a field of a commit. */
function personal(text: string | undefined): string | undefined {
  return text
    ?.replace(/[\p{Cc}<>]/gu, '')
    .trim()
    .slice(0, MAX_NAME);
}
