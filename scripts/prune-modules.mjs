// Removes what an image of this platform never loads: node scripts/prune-modules.mjs <node_modules>
import { existsSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const ARCH = { x64: 'x86_64', arm64: 'aarch64' };
const OS = { linux: 'linux', darwin: 'darwin', win32: 'windows' };

const modules = path.resolve(process.argv[2] ?? 'node_modules');
const { arch, platform } = process;

/** Names native builds of this platform, in the words of Rust and of Node. */
const isOwn = (name) =>
  name === `${platform}-${arch}` ||
  (name.startsWith(`${ARCH[arch]}-`) && name.includes(`-${OS[platform]}`));

/** Removes the builds for other platforms, unless there is none for this one. */
function keepOwn(folder) {
  if (!existsSync(folder)) return;
  const builds = readdirSync(folder);
  if (!builds.some(isOwn))
    throw new Error(`${folder} has no native module for ${platform}-${arch}`);
  for (const build of builds.filter((each) => !isOwn(each))) remove(path.join(folder, build));
}

function remove(file) {
  rmSync(file, { recursive: true, force: true });
}

keepOwn(path.join(modules, '@temporalio', 'core-bridge', 'releases'));
keepOwn(path.join(modules, 'bcrypt', 'prebuilds'));
// An optional peer of types, which no program loads.
remove(path.join(modules, 'typescript'));
