import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Mounts of a single program, which end with it. */
const OWN_MOUNTS =
  process.getuid?.() === 0
    ? ['unshare', '--mount']
    : ['unshare', '--user', '--map-root-user', '--mount'];

/** $1: the folder, $2: the mount options of its disk. Copies the folder's contents there. */
const PUT_ON_DISK =
  'mkdir -p "$1.disk" && mount -t tmpfs -o size=100m,"$2" tmpfs "$1.disk" && ' +
  'cp -R "$1/." "$1.disk" && mount --bind "$1.disk" "$1" && shift 2 && exec "$@"';
const MAKE_READ_ONLY = 'mount -o remount,bind,ro "$1" && shift && exec "$@"';

/** A command prefix that runs a program with a folder on a separate disk. */
export type OnDisk = readonly string[];

/**
 * Puts a folder on a disk that is read-only: by a mount, or by permissions if mounting is impossible.
 *
 * @returns undefined if neither works: as root on a machine without mounts.
 */
export async function onReadOnlyDisk(folder: string): Promise<OnDisk | undefined> {
  if (await canMount()) {
    const readOnly = shell(MAKE_READ_ONLY, [folder]);
    return [...OWN_MOUNTS, ...shell(PUT_ON_DISK, [folder, 'mode=755']), ...readOnly];
  }
  if (process.getuid?.() === 0) return undefined;
  await chmod(folder, 0o555);
  return [];
}

/**
 * Puts a folder with its contents on a disk of 100 MB.
 *
 * @param limit another limit of that disk, as a tmpfs option.
 * @returns undefined if mounting is impossible.
 */
export async function onSmallDisk(folder: string, limit = 'mode=755'): Promise<OnDisk | undefined> {
  if (!(await canMount())) return undefined;
  return [...OWN_MOUNTS, ...shell(PUT_ON_DISK, [folder, limit])];
}

/**
 * Mounts another file over a file.
 *
 * @returns undefined if mounting is impossible.
 */
export async function withInstead(file: string, other: string): Promise<OnDisk | undefined> {
  if (!(await canMount())) return undefined;
  const script = 'mount --bind "$2" "$(readlink -f "$1")" && shift 2 && exec "$@"';
  return [...OWN_MOUNTS, ...shell(script, [file, other])];
}

function shell(script: string, args: readonly string[]): string[] {
  return ['sh', '-c', script, 'sh', ...args];
}

async function canMount(): Promise<boolean> {
  const [command = '', ...args] = OWN_MOUNTS;
  try {
    await execute(command, [...args, 'sh', '-c', 'mount -t tmpfs tmpfs /tmp']);
    return true;
  } catch {
    return false; // unshare is missing or not allowed
  }
}
