import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { promisify } from 'node:util';
import { addBaseLayout, addLibraries, addProgram, findProgram } from '../images/host-programs.js';
import type { InstalledRuntime } from './install-runtime.js';
import { Rootfs } from '../images/rootfs.js';

const run = promisify(execFile);

/** Programs for agents: copied from this machine, omitted if it lacks them. */
const USERLAND = (
  'sh bash ls cat cp mv rm mkdir rmdir ln touch chmod pwd echo printf test true false env sleep ' +
  'date head tail wc sort uniq cut tr tee xargs basename dirname realpath readlink stat du df ' +
  'id whoami uname hostname nproc seq expr yes mktemp timeout nohup kill md5sum sha256sum base64 ' +
  'od split comm paste join fold fmt nl tac rev column which grep egrep fgrep sed awk find tar ' +
  'gzip gunzip zcat bzip2 xz unzip zip diff cmp patch file less git curl wget ssh ps pgrep pkill ' +
  'top free uptime jq rg openssl'
).split(' ');

/** Without these the runtime's own tools do not work. */
const REQUIRED = ['sh', 'ls', 'cat', 'grep', 'sed', 'find', 'tar'];

const CERTIFICATES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt'];

/** Returns all files of the image: Node, OpenClaw, a shell and its tools, certificates. */
export async function openClawRootfs(installed: InstalledRuntime): Promise<Rootfs> {
  const rootfs = new Rootfs();
  addBaseLayout(rootfs);
  await addProgram(rootfs, installed.node, '/usr/local/bin/node');
  await rootfs.addTree('/opt/openclaw/node_modules', installed.modules, isNotNeeded);
  rootfs.addSymlink('/usr/local/bin/openclaw', '/opt/openclaw/node_modules/.bin/openclaw');
  await addUserland(rootfs);
  await addGit(rootfs);
  await addCertificates(rootfs);
  return rootfs;
}

/** Reports whether a file is a source map, or part of the packaged Node, whose binary is already in place. */
function isNotNeeded(relativePath: string): boolean {
  return /^(node-linux-|\.package-lock\.json)/.test(relativePath) || relativePath.endsWith('.map');
}

async function addUserland(rootfs: Rootfs): Promise<void> {
  for (const name of USERLAND) {
    const program = await findProgram(name);
    if (program !== undefined) await addProgram(rootfs, program, `/usr/bin/${name}`);
    else if (REQUIRED.includes(name))
      throw new Error(`This machine has no ${name}, which the image needs`);
  }
}

/** Adds git and the folder of its helpers, such as `git-remote-https`. */
async function addGit(rootfs: Rootfs): Promise<void> {
  const git = await findProgram('git');
  if (git === undefined) return;
  const { stdout } = await run(git, ['--exec-path'], { timeout: 10_000 });
  const folder = stdout.trim();
  await rootfs.addTree(folder, folder);
  await addLibraries(rootfs, `${folder}/git-remote-http`);
}

async function addCertificates(rootfs: Rootfs): Promise<void> {
  for (const file of CERTIFICATES) {
    const there = await access(file).then(
      () => true,
      () => false,
    );
    if (!there) continue;
    await rootfs.addFile('/etc/ssl/certs/ca-certificates.crt', file);
    rootfs.addSymlink('/etc/ssl/cert.pem', 'certs/ca-certificates.crt');
    return;
  }
}
