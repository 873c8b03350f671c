import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Mounts for one program alone: they are gone with it, however it ends. */
const OWN_MOUNTS =
  process.getuid?.() === 0
    ? ['unshare', '--mount']
    : ['unshare', '--user', '--map-root-user', '--mount'];

/** $1: the folder, $2: how its disk is mounted. What is in the folder is copied there. */
const PUT_ON_DISK =
  'mkdir -p "$1.disk" && mount -t tmpfs -o size=100m,"$2" tmpfs "$1.disk" && ' +
  'cp -R "$1/." "$1.disk" && mount --bind "$1.disk" "$1" && shift 2 && exec "$@"';
const MAKE_READ_ONLY = 'mount -o remount,bind,ro "$1" && shift && exec "$@"';

/** A program, with arguments, that runs another one with a folder on a disk of its own. */
export type OnDisk = readonly string[];

/**
 * The folder, with what is in it, on a disk that nothing can be written to. By permissions where
 * nothing can be mounted.
 *
 * @returns undefined where there is no way: root on a machine without mounts.
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
 * The folder, with what is in it, on a disk of 100 MB.
 *
 * @param limit another limit of that disk, as tmpfs takes it.
 * @returns undefined where nothing can be mounted.
 */
export async function onSmallDisk(folder: string, limit = 'mode=755'): Promise<OnDisk | undefined> {
  if (!(await canMount())) return undefined;
  return [...OWN_MOUNTS, ...shell(PUT_ON_DISK, [folder, limit])];
}

/**
 * Another file in the place of one.
 *
 * @returns undefined where nothing can be mounted.
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
    return false; // no such program, or not allowed
  }
}
