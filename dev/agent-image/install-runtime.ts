import { execFile } from 'node:child_process';
import { copyFile, mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './host-programs.js';

const run = promisify(execFile);

/** Bound for one npm installation over a slow line. */
const INSTALL_TIMEOUT_MS = 15 * 60_000;

export interface RuntimePackages {
  /** Folder with `package.json` and `package-lock.json` of the runtime. */
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
 * Installs the pinned runtime and its Node from npm into a folder, verified by the lock's hashes.
 * No package's install script runs, except the runtime's own clean-up of its package.
 */
export async function installRuntime(
  packages: RuntimePackages,
  work: string,
  log: (line: string) => void,
): Promise<InstalledRuntime> {
  const npm = await findNpm();
  const nodePackage = `node-linux-${process.arch}`;
  const nodeFolder = path.join(work, 'node');
  const runtimeFolder = path.join(work, 'runtime');
  await mkdir(nodeFolder);
  await mkdir(runtimeFolder);

  log(`installing ${nodePackage} from npm`);
  await writeLockOf(nodePackage, packages.folder, nodeFolder);
  await npmInstall(process.execPath, npm, nodeFolder);
  const node = path.join(nodeFolder, 'node_modules', nodePackage, 'bin', 'node');

  log(`installing openclaw ${packages.version} from npm: about half a minute`);
  for (const file of ['package.json', 'package-lock.json']) {
    await copyFile(path.join(packages.folder, file), path.join(runtimeFolder, file));
  }
  // With the runtime's Node: npm leaves out native addons that the Node it runs on is too old for.
  await npmInstall(node, npm, runtimeFolder);
  const modules = path.join(runtimeFolder, 'node_modules');
  const openclaw = path.join(modules, 'openclaw');
  // It removes the package's mark "not yet set up", which the runtime would trip over when started
  // on a read-only root; it touches nothing outside of its package.
  await run(node, ['scripts/postinstall-bundled-plugins.mjs'], {
    cwd: openclaw,
    timeout: INSTALL_TIMEOUT_MS,
  });
  return { node, modules };
}

async function npmInstall(node: string, npm: string, folder: string): Promise<void> {
  const platform = ['--os=linux', `--cpu=${process.arch}`, '--libc=glibc'];
  const options = ['--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', ...platform];
  await run(node, [npm, 'ci', ...options], {
    cwd: folder,
    timeout: INSTALL_TIMEOUT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
}

/** Makes a package of one dependency with the version and hash of the runtime's lock. */
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

/** The npm that started us, or the one on this machine. */
async function findNpm(): Promise<string> {
  const starter = process.env.npm_execpath;
  if (starter !== undefined && path.basename(starter) === 'npm-cli.js') return starter;
  const program = await findProgram('npm');
  if (program === undefined) throw new Error('npm is not on this machine');
  return realpath(program);
}
