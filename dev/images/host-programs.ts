import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Rootfs } from './rootfs.js';

const run = promisify(execFile);

const PROGRAM_FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin'];

/** Libraries that glibc loads by name at run time; some glibc versions have them built in. */
const NAME_SERVICES = ['libnss_files.so.2', 'libnss_dns.so.2', 'libresolv.so.2'];

/** Reports whether this machine's programs run in a `FROM scratch` image: Linux with glibc. */
export function hasGlibc(): boolean {
  if (process.platform !== 'linux') return false;
  const report: unknown = process.report.getReport();
  const header =
    typeof report === 'object' && report !== null && 'header' in report && report.header;
  return typeof header === 'object' && header !== null && 'glibcVersionRuntime' in header;
}

/** Adds the folders that every Linux program expects, in the merged layout of current distributions. */
export function addBaseLayout(rootfs: Rootfs): void {
  for (const folder of ['bin', 'sbin', 'lib', 'lib64']) {
    rootfs.addDirectory(`/usr/${folder}`);
    rootfs.addSymlink(`/${folder}`, `usr/${folder}`);
  }
  rootfs.addDirectory('/tmp', 0o1777);
  rootfs.addDirectory('/var/tmp', 0o1777);
  for (const folder of ['/etc', '/proc', '/sys', '/dev', '/run']) rootfs.addDirectory(folder);
  rootfs.addDirectory('/root', 0o700);
  rootfs.addText(
    '/etc/passwd',
    'root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n' +
      'nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n',
  );
  rootfs.addText('/etc/group', 'root:x:0:\nnode:x:1000:\nnogroup:x:65534:\n');
  rootfs.addText('/etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n');
  // A new volume copies the owner of the folder it covers; this folder belongs to the runtime's user.
  rootfs.addDirectory('/home/node', 0o755, { uid: 1000, gid: 1000 });
}

/** Finds the path of a program on this machine. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const folder of PROGRAM_FOLDERS) {
    const file = path.join(folder, name);
    try {
      await access(file, constants.X_OK);
      return file;
    } catch {
      // Not in this folder: try the next one.
    }
  }
  return undefined;
}

/** Adds a program, by default under `/usr/bin`, with every library it needs. */
export async function addProgram(
  rootfs: Rootfs,
  source: string,
  target = `/usr/bin/${path.basename(source)}`,
): Promise<void> {
  await rootfs.addFile(target, source);
  await addLibraries(rootfs, source);
}

/** Adds the libraries that a local program, library or addon is linked with. */
export async function addLibraries(rootfs: Rootfs, source: string): Promise<void> {
  for (const library of await linkedLibraries(source)) {
    const target = library.startsWith('/usr/') ? library : `/usr${library}`;
    if (rootfs.has(target)) continue;
    await rootfs.addFile(target, library);
    if (!path.basename(library).startsWith('libc.so')) continue;
    for (const name of NAME_SERVICES) {
      const file = path.join(path.dirname(library), name);
      const there = await access(file).then(
        () => true,
        () => false,
      );
      if (there) await rootfs.addFile(path.posix.join(path.dirname(target), name), file);
    }
  }
}

async function linkedLibraries(source: string): Promise<string[]> {
  try {
    const { stdout } = await run('ldd', [source], { timeout: 10_000, env: { LC_ALL: 'C' } });
    return [...stdout.matchAll(/(?:=> |^[ \t]+)(\/\S+) \(0x/gm)].flatMap((match) => match[1] ?? []);
  } catch (error) {
    // `ldd` fails for scripts and static programs, which need no libraries.
    if (error instanceof Error && 'code' in error && error.code === 1) return [];
    throw error;
  }
}
