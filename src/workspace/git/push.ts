import { access } from 'node:fs/promises';
import path from 'node:path';
import { ServiceError } from '../../lib/errors.js';
import type { CheckedTarget, Outbound } from '../../platform/outbound/outbound.js';
import { withView, type Git } from './git-view.js';
import type { WorkspacePlace } from './view-folder.js';
import { findRepository } from './repository.js';

/** What knows where addresses of remotes lead, and which of them may be reached. */
export type Remotes = Pick<Outbound, 'addressesOf'>;

const NO_ORIGIN = 'The repository has no origin';
const NO_BRANCH = 'No branch is checked out';
const NOT_SECURE = 'Only https is allowed where OUTBOUND_ALLOW does not name the remote';
export const NOT_IN_TIME = 'The remote was not done in time: it may have the commit';
const REFUSED = 'The remote refused the commit: it may have others that are not here';
const FAILED =
  'The remote could not be pushed to: it does not answer as git, has a certificate that is not trusted here, asks for a login, or is sent too much at once';
const NO_WAY = 'The git that is there cannot push over the network: it lacks git-remote-https';

/** What libcurl reads as nothing but a name. */
const NAME = /^[a-z0-9_][a-z0-9_.-]{0,252}$/;

type Setting = readonly [name: string, value: string];

const SETTINGS: readonly Setting[] = [
  ['http.followRedirects', 'false'],
  // Git gives up by itself after 30 s of silence, should nobody be there who ends it.
  ['http.lowSpeedLimit', '1'],
  ['http.lowSpeedTime', '30'],
  // Large files go as they are, and others are compared in bounds: a helper has 256 MB of memory.
  ['core.bigFileThreshold', '8m'],
  ['pack.threads', '1'],
  ['pack.windowMemory', '32m'],
  ['pack.deltaCacheSize', '16m'],
];

/** Where commits go. */
interface Origin {
  readonly branch: string;
  readonly remote: string;
}

interface PushOptions {
  readonly remotes: Remotes;
  /** Ends a push, which has failed then. */
  readonly late: AbortSignal;
  /** Aborts when nobody waits any more. */
  readonly signal: AbortSignal | undefined;
}

/** Where a repository's commits are pushed to, or why nowhere. */
export function originOf({ branch, remote }: Partial<Origin>): Origin | string {
  if (remote === undefined) return NO_ORIGIN;
  if (branch === undefined) return NO_BRANCH;
  return { branch, remote };
}

/**
 * Pushes a commit to its branch at origin, and nothing else. Git connects to the address that was checked, follows
 * no redirect, and asks nobody for a password: what the remote's address holds is all there is.
 *
 * @returns why it was not pushed, which names nothing of the remote's; undefined when it was.
 * @throws the signal's reason
 */
export async function pushCommit(
  place: WorkspacePlace,
  { branch, hash, remote }: Origin & { readonly hash: string },
  { late, remotes, signal }: PushOptions,
): Promise<string | undefined> {
  const ending = signal ? AbortSignal.any([late, signal]) : late;
  try {
    const { login, url } = withoutLogin(remote);
    const target = await remotes.addressesOf(url, ending);
    const protocol = target.url.protocol.slice(0, -1);
    if (protocol === 'http' && !target.isNamed) return NOT_SECURE;
    const host = hostOf(target);
    const address = new URL(target.url);
    address.hostname = host;
    const settings: Setting[] = [
      ...SETTINGS,
      ...(target.isAddress ? [] : [pinned(host, target)]),
      ...(login === undefined ? [] : [asHeader(login)]),
    ];
    const repository = await findRepository(place.root, place.path, ending);
    if (!repository) return 'The repository is gone';
    return await withView(place, repository, ending, async (view) => {
      await view.checked();
      // Asked first: a git without the program may end by a broken pipe instead of saying so.
      if (!(await speaks(view.git, protocol))) return NO_WAY;
      const { code, output } = await view.git(
        [
          ...['push', '--porcelain', '--no-verify', '--no-signed', '--recurse-submodules=no'],
          ...['--no-follow-tags', '--', address.href, `${hash}:refs/heads/${branch}`],
        ],
        // Failures are told here: what git says of them names the remote.
        { env: { GIT_ALLOW_PROTOCOL: protocol, ...asEnvironment(settings) }, codes: [0, 1, 128] },
      );
      if (code === 0) return undefined;
      return /^!/m.test(output.toString()) ? REFUSED : FAILED;
    });
  } catch (error) {
    signal?.throwIfAborted();
    if (late.aborted) return NOT_IN_TIME;
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
}

/** Whether git has the program by which it speaks to remotes: some come without. */
async function speaks(git: Git, protocol: string): Promise<boolean> {
  const { output } = await git(['--exec-path']);
  return access(path.join(output.toString().trimEnd(), `git-remote-${protocol}`)).then(
    () => true,
    () => false,
  );
}

/** An address without the name and password that it may hold, and these as `name:password`. */
function withoutLogin(remote: string): { url: string; login: string | undefined } {
  if (!URL.canParse(remote)) return { url: remote, login: undefined };
  const url = new URL(remote);
  const { password, username } = url;
  url.username = '';
  url.password = '';
  const hasLogin = username !== '' || password !== '';
  return {
    url: url.href,
    login: hasLogin ? `${decoded(username)}:${decoded(password)}` : undefined,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a percent sign that is one
  }
}

/**
 * As libcurl looks names up, without a last dot.
 *
 * @throws ServiceError for one that it could read as something else.
 */
function hostOf({ host, isAddress, url }: CheckedTarget): string {
  if (isAddress) return url.hostname;
  const name = host.replace(/\.$/, '');
  if (!NAME.test(name)) throw new ServiceError(500, 'The host of the remote has no usual name');
  return name;
}

/** Where a name leads to, so that it is not looked up again. */
function pinned(host: string, { addresses, port }: CheckedTarget): Setting {
  const all = addresses.map((each) => (each.includes(':') ? `[${each}]` : each));
  return ['http.curloptResolve', `${host}:${port}:${all.join(',')}`];
}

/** Not in an argument, which everybody on the machine may read. */
const asHeader = (login: string): Setting => [
  'http.extraHeader',
  `Authorization: Basic ${Buffer.from(login).toString('base64')}`,
];

function asEnvironment(settings: readonly Setting[]): Record<string, string> {
  const named = settings.flatMap(([name, value], at): Setting[] => [
    [`GIT_CONFIG_KEY_${at}`, name],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return Object.fromEntries([['GIT_CONFIG_COUNT', String(settings.length)], ...named]);
}
