import { cp, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { StartFailure } from '../failure.js';
import { findProgram } from '../processes/find-program.js';
import { run } from '../processes/run.js';
import { projectRoot } from '../root.js';

const TIMEOUT = { timeout: 10_000 };

/** Addresses, with the names of their services. The proxy arrives at the API from a network that it trusts. */
const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  '127.0.0.1': [
    ...['localhost', 'icecast', 'postgres', 'redis', 'summarizer', 'temporal'],
    ...['backend.localhost', 'platform.localhost', 'radio.localhost'],
  ],
  '10.230.0.1': ['host'],
  '10.230.0.2': ['api'],
};

/** Programs of the machine, without which nothing is rehearsed, with their Debian packages. */
const PROGRAMS: Readonly<Record<string, string>> = {
  caddy: 'caddy',
  dockerd: 'docker.io',
  ip: 'iproute2',
  iptables: 'iptables',
  mount: 'mount',
  openssl: 'openssl',
  pg_isready: 'postgresql-client',
  psql: 'postgresql-client',
  'redis-cli': 'redis-tools',
  'redis-server': 'redis-server',
  setpriv: 'util-linux',
  unshare: 'util-linux',
  wget: 'wget',
};

/** The places of a rehearsal in its own view of the machine; `/run` is empty at its start. */
export const PLACES = {
  /** The working folder of the image of our processes. */
  app: '/run/app',
  programs: '/run/programs',
  secrets: '/run/secrets',
  volumes: '/run/volumes',
  docker: 'unix:///run/docker.sock',
} as const;

/** True on Linux as root, who may make namespaces and start a Docker engine. */
const canRehearse = process.platform === 'linux' && process.getuid?.() === 0;

/** Returns the Debian packages that a rehearsal lacks on this machine. */
async function missingPackages(): Promise<readonly string[]> {
  const found = await Promise.all(
    Object.entries(PROGRAMS).map(async ([name, of]) =>
      (await findProgram(name)) === undefined ? [of] : [],
    ),
  );
  return [...new Set(found.flat())];
}

/** Requires a machine on which a rehearsal can run. @throws StartFailure */
export async function requireMachine(): Promise<void> {
  if (!canRehearse) {
    throw new StartFailure('A rehearsal needs Linux and root: run it with sudo.');
  }
  const missing = await missingPackages();
  if (missing.length === 0) return;
  throw new StartFailure(
    `A rehearsal needs programs of the packages ${missing.join(', ')}: install them, and retry.`,
  );
}

/**
 * Makes this process's namespaces of mounts and of the network the machine of a rehearsal: its addresses and names,
 * and the files where the containers have them.
 *
 * @param folder the folder of the rehearsal on disk.
 * @param programs paths of programs to find by their names.
 */
export async function prepareMachine(
  folder: string,
  programs: Readonly<Record<string, string>>,
): Promise<void> {
  await run('ip', ['link', 'set', 'lo', 'up'], TIMEOUT);
  for (const address of Object.keys(ADDRESSES).filter((each) => !each.startsWith('127.'))) {
    await run('ip', ['address', 'add', `${address}/32`, 'dev', 'lo'], TIMEOUT);
  }
  const hosts = path.join(folder, 'hosts');
  const lines = Object.entries(ADDRESSES).map(([address, names]) => [address, ...names].join(' '));
  await writeFile(hosts, `${lines.join('\n')}\n`, { mode: 0o644 });
  await bind(hosts, '/etc/hosts');

  await run('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', '/run'], TIMEOUT);
  await Promise.all(
    Object.values(PLACES)
      .filter(isPath)
      .map((each) => mkdir(each)),
  );
  for (const each of ['deploy', 'dist', 'node_modules']) {
    const place = path.join(PLACES.app, each);
    await mkdir(place);
    await bind(path.join(projectRoot, each), place);
  }
  await cp(path.join(projectRoot, 'package.json'), path.join(PLACES.app, 'package.json'));
  for (const [name, file] of Object.entries(programs)) {
    const place = path.join(PLACES.programs, name);
    await writeFile(place, '');
    await bind(file, place);
  }
}

/** Shows a file or folder at another place, too. */
export async function bind(from: string, to: string): Promise<void> {
  await run('mount', ['--bind', from, to], TIMEOUT);
}

const isPath = (place: string): boolean => place.startsWith('/');
