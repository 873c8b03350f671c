import { execFile } from 'node:child_process';
import { copyFile, mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../images/host-programs.js';
import type { Stranger } from './stranger.js';

const run = promisify(execFile);

/** Time limit of one npm installation over a slow line. */
const INSTALL_TIMEOUT_MS = 15 * 60_000;
const CONFIG_TIMEOUT_MS = 60_000;

export interface RuntimePackages {
  /** Folder with the runtime's `package.json` and `package-lock.json`. */
  readonly folder: string;
  /** The OpenClaw release that the lock pins. */
  readonly version: string;
}

export interface InstalledRuntime {
  /** The Node binary that the runtime runs on. */
  readonly node: string;
  /** `node_modules` with the runtime in it. */
  readonly modules: string;
}

/**
 * Installs the pinned runtime and its Node from npm into a folder, verified by the lock's hashes. No
 * package's install script runs, except the runtime's own clean-up of its package.
 *
 * @param stranger the folder and user of the installation.
 */
export async function installRuntime(
  packages: RuntimePackages,
  stranger: Stranger,
  log: (line: string) => void,
): Promise<InstalledRuntime> {
  const usualNpm = await findNpm();
  const npm = await stranger.reachable(usualNpm);
  const env = await registryOf(usualNpm);
  const nodePackage = `node-linux-${process.arch}`;
  const nodeFolder = path.join(stranger.folder, 'node');
  const runtimeFolder = path.join(stranger.folder, 'runtime');
  // All our files are written before any fetched program runs, which could replace them.
  await mkdir(nodeFolder);
  await mkdir(runtimeFolder);
  await writeLockOf(nodePackage, packages.folder, nodeFolder);
  for (const file of LOCKED) {
    await copyFile(path.join(packages.folder, file), path.join(runtimeFolder, file));
  }
  for (const folder of [nodeFolder, runtimeFolder]) {
    for (const file of LOCKED) await stranger.own(path.join(folder, file));
    await stranger.own(folder);
  }

  log(`installing ${nodePackage} from npm`);
  await stranger.runNode([npm, ...INSTALL], { cwd: nodeFolder, env, timeout: INSTALL_TIMEOUT_MS });
  const node = path.join(nodeFolder, 'node_modules', nodePackage, 'bin', 'node');

  log(`installing openclaw ${packages.version} from npm: about half a minute`);
  // Uses the runtime's Node: npm omits native addons for which the Node that runs npm is too old.
  const options = { cwd: runtimeFolder, env, timeout: INSTALL_TIMEOUT_MS };
  await stranger.run(node, [npm, ...INSTALL], options);
  const modules = path.join(runtimeFolder, 'node_modules');
  const openclaw = path.join(modules, 'openclaw');
  // The script removes the package's mark "not yet set up", at which the runtime would fail on a
  // read-only root. It touches nothing outside its package.
  await stranger.run(node, ['scripts/postinstall-bundled-plugins.mjs'], {
    cwd: openclaw,
    timeout: INSTALL_TIMEOUT_MS,
  });
  return { node, modules };
}

const LOCKED = ['package.json', 'package-lock.json'];

const INSTALL = [
  'ci',
  ...['--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund'],
  ...['--os=linux', `--cpu=${process.arch}`, '--libc=glibc'],
];

/** npm settings for reaching its registry, from files that only its user can read. */
const REGISTRY = ['registry', 'proxy', 'https-proxy', 'noproxy', 'cafile', 'strict-ssl'];

async function registryOf(npm: string): Promise<Record<string, string>> {
  const { stdout } = await run(process.execPath, [npm, 'config', 'list', '--json'], {
    timeout: CONFIG_TIMEOUT_MS,
  });
  const config = JSON.parse(stdout) as Readonly<Record<string, unknown>>;
  const set = REGISTRY.filter((key) => ![undefined, null, ''].includes(config[key] as null));
  return Object.fromEntries(
    set.map((key) => [`npm_config_${key.replaceAll('-', '_')}`, String(config[key])]),
  );
}

/** Writes a package with one dependency, at the version and hash of the runtime's lock. */
async function writeLockOf(name: string, from: string, to: string): Promise<void> {
  const text = await readFile(path.join(from, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Record<string, { version: string }> };
  const pinned = packages[`node_modules/${name}`];
  if (!pinned) throw new Error(`The runtime's lock has no ${name}`);
  const root = { name: 'node', version: '1.0.0', dependencies: { [name]: pinned.version } };
  const lock = {
    ...root,
    lockfileVersion: 3,
    packages: { '': root, [`node_modules/${name}`]: pinned },
  };
  await writeFile(path.join(to, 'package.json'), JSON.stringify(root));
  await writeFile(path.join(to, 'package-lock.json'), JSON.stringify(lock));
}

/** Returns the npm that started this process, or the one on this machine. */
async function findNpm(): Promise<string> {
  const starter = process.env.npm_execpath;
  if (starter !== undefined && path.basename(starter) === 'npm-cli.js') return starter;
  const program = await findProgram('npm');
  if (program === undefined) throw new Error('npm is not installed on this machine');
  return realpath(program);
}
