import { access } from 'node:fs/promises';
import path from 'node:path';
import { ServiceError } from '../../lib/errors.js';
import type { CheckedTarget, OutboundClient } from '../../platform/outbound/outbound.js';
import { withView, type Git } from './git-view.js';
import type { WorkspacePlace } from './view-folder.js';
import { findRepository } from './repository.js';

/** Resolves the addresses of remotes, and decides which may be reached. */
export type Remotes = Pick<OutboundClient, 'addressesOf'>;

const NO_ORIGIN = 'The repository has no origin';
const NO_BRANCH = 'No branch is checked out';
const NOT_SECURE = 'Only https is allowed for a remote that OUTBOUND_ALLOW does not name';
export const NOT_IN_TIME = 'The remote did not finish in time: it may have the commit';
const REFUSED = 'The remote refused the commit: it may have commits that are missing here';
const FAILED =
  'The push failed: the remote does not answer as git, has an untrusted certificate, requires a login, or received too much data at once';
const NO_WAY = 'The installed git cannot push over the network: git-remote-https is missing';

/** A host name that libcurl cannot read as anything else. */
const NAME = /^[a-z0-9_][a-z0-9_.-]{0,252}$/;

type Setting = readonly [name: string, value: string];

const SETTINGS: readonly Setting[] = [
  ['http.followRedirects', 'false'],
  // Git gives up after 30 s of silence, in case no process is left to end it.
  ['http.lowSpeedLimit', '1'],
  ['http.lowSpeedTime', '30'],
  // Large files are sent without deltas, and memory for deltas is limited: a helper has 256 MB.
  ['core.bigFileThreshold', '8m'],
  ['pack.threads', '1'],
  ['pack.windowMemory', '32m'],
  ['pack.deltaCacheSize', '16m'],
];

/** Target of a push. */
interface Origin {
  readonly branch: string;
  readonly remote: string;
}

interface PushOptions {
  readonly remotes: Remotes;
  /** Aborts at the time limit of the push, which has then failed. */
  readonly late: AbortSignal;
  /** Aborts when the client stops waiting. */
  readonly signal: AbortSignal | undefined;
}

/** Returns the target of a repository's pushes, or the reason why it has none. */
export function originOf({ branch, remote }: Partial<Origin>): Origin | string {
  if (remote === undefined) return NO_ORIGIN;
  if (branch === undefined) return NO_BRANCH;
  return { branch, remote };
}

/**
 * Pushes only this commit, to its branch at the checked address of origin, without redirects or prompts.
 * Returns why the push failed, without details of the remote. @throws the signal's reason
 */
export async function pushCommit(
  place: WorkspacePlace,
  { branch, hash, remote }: Origin & { readonly hash: string },
  { late, remotes, signal }: PushOptions,
): Promise<string | undefined> {
  const ending = signal ? AbortSignal.any([late, signal]) : late;
  try {
    const { login, url } = splitCredentials(remote);
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
    if (!repository) return 'The repository no longer exists';
    return await withView(place, repository, ending, async (view) => {
      await view.checked();
      // Checked first: a git without the remote helper may die of a broken pipe instead.
      if (!(await speaks(view.git, protocol))) return NO_WAY;
      const { code, output } = await view.git(
        [
          ...['push', '--porcelain', '--no-verify', '--no-signed', '--recurse-submodules=no'],
          ...['--no-follow-tags', '--', address.href, `${hash}:refs/heads/${branch}`],
        ],
        // Failures get messages of our own: git's output names the remote.
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

/** Reports whether git has its remote helper for a protocol; some installations lack it. */
async function speaks(git: Git, protocol: string): Promise<boolean> {
  const { output } = await git(['--exec-path']);
  return access(path.join(output.toString().trimEnd(), `git-remote-${protocol}`)).then(
    () => true,
    () => false,
  );
}

/** Splits an address into the URL without login, and the login as `name:password`. */
function splitCredentials(remote: string): { url: string; login: string | undefined } {
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
    return text; // a literal percent sign
  }
}

/** Returns the host as libcurl resolves it. @throws ServiceError if libcurl could read it differently */
function hostOf({ host, isAddress, url }: CheckedTarget): string {
  if (isAddress) return url.hostname;
  const name = host.replace(/\.$/, '');
  if (!NAME.test(name))
    throw new ServiceError(
      500,
      "The remote's host name is not supported: use letters, digits, dots and hyphens",
    );
  return name;
}

/** Pins a host to its checked addresses, so that it is not resolved again. */
function pinned(host: string, { addresses, port }: CheckedTarget): Setting {
  const all = addresses.map((each) => (each.includes(':') ? `[${each}]` : each));
  return ['http.curloptResolve', `${host}:${port}:${all.join(',')}`];
}

/** The login is passed in the environment, because every user of the machine can read arguments. */
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
