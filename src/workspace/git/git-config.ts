import { createHash } from 'node:crypto';
import { setBounded } from '../../lib/bounded-map.js';
import { UnsupportedRepositoryError } from './unsupported.js';
import { runGit } from './run-git.js';

/** The facts read from a repository's configuration; everything else in it is ignored. */
export interface RepositoryFacts {
  readonly objectFormat: 'sha1' | 'sha256';
  readonly author: { readonly name?: string; readonly email?: string };
  /** Address of origin, as configured. */
  readonly remote: string | undefined;
  /** Lines of a `[core]` section that decide how files are compared and staged, in words of our own. */
  readonly comparison: string;
}

/** Supported repository extensions; git itself refuses a repository with an unknown extension. */
const EXTENSIONS: Readonly<Record<string, (value: string) => boolean>> = {
  'extensions.noop': () => true,
  'extensions.objectformat': (value) => value === 'sha1' || value === 'sha256',
  'extensions.partialclone': () => true,
  'extensions.preciousobjects': () => true,
  'extensions.refstorage': (value) => value === 'files',
  'extensions.relativeworktrees': () => true,
  'extensions.worktreeconfig': () => true,
};

const MAX_NAME = 200;
const MAX_REMOTE = 2_000;

const KNOWN = new Map<string, RepositoryFacts>();
const MAX_KNOWN = 100;

/** Reads a configuration from stdin, where includes have no effect. @throws UnsupportedRepositoryError */
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
    // Not a repository, so git searches for none and reads no other configuration.
    env: { GIT_DIR: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
    input: config,
    signal,
  });
  if (code !== 0) throw new UnsupportedRepositoryError('its configuration cannot be read');
  const facts = readFacts(valuesOf(output.toString()));
  setBounded(KNOWN, key, facts, MAX_KNOWN);
  return facts;
}

type Values = readonly (readonly [name: string, value: string | undefined])[];

function readFacts(values: Values): RepositoryFacts {
  for (const [name, value = ''] of values) {
    if (!name.startsWith('extensions.')) continue;
    if (EXTENSIONS[name]?.(value) !== true) {
      throw new UnsupportedRepositoryError('it uses an extension or format that is not supported');
    }
  }
  const last = (name: string) => values.findLast(([each]) => each === name)?.[1];
  const name = personal(last('user.name'));
  const email = personal(last('user.email'));
  // Git pushes to the first of several addresses first.
  const remote = values.find(([each]) => each === 'remote.origin.url')?.[1];
  return {
    objectFormat: last('extensions.objectformat') === 'sha256' ? 'sha256' : 'sha1',
    author: { ...(name && { name }), ...(email && { email }) },
    remote: remote !== undefined && remote.length <= MAX_REMOTE ? remote : undefined,
    comparison: comparisonOf(values),
  };
}

/** The settings of a comparison, by their lower-case names. */
const COMPARISON: Readonly<Record<string, (value: string | undefined) => string | undefined>> = {
  'core.autocrlf': (value) => (value?.toLowerCase() === 'input' ? 'input' : booleanOf(value)),
  'core.eol': (value) => /^(?:lf|crlf)$/.exec(value?.toLowerCase() ?? '')?.[0] ?? 'native',
  'core.filemode': booleanOf,
  'core.symlinks': booleanOf,
};

/** Returns the last valid value of each setting, as lines; git itself refuses invalid booleans. */
function comparisonOf(values: Values): string {
  const known = new Map<string, string>();
  for (const [name, value] of values) {
    const read = COMPARISON[name]?.(value);
    if (read !== undefined) known.set(name, read);
  }
  return [...known].map(([name, value]) => `  ${name.slice('core.'.length)} = ${value}\n`).join('');
}

/** Reads a boolean as git does; a name without a value means true. */
function booleanOf(value: string | undefined): 'true' | 'false' | undefined {
  if (value === undefined || /^(?:true|yes|on)$/i.test(value)) return 'true';
  if (/^(?:false|no|off|)$/i.test(value)) return 'false';
  if (!/^[+-]?\d{1,9}[kmg]?$/i.test(value)) return undefined;
  return parseInt(value, 10) === 0 ? 'false' : 'true';
}

/** Parses entries of the form `name\nvalue\0`. */
function valuesOf(list: string): Values {
  return list
    .split('\0')
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [name = '', ...value] = entry.split('\n');
      return [name, value.length === 0 ? undefined : value.join('\n')] as const;
    });
}

/** Removes the characters that would end a field of a commit. */
function personal(text: string | undefined): string | undefined {
  return text
    ?.replace(/[\p{Cc}<>]/gu, '')
    .trim()
    .slice(0, MAX_NAME);
}
