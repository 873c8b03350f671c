import { randomBytes } from 'node:crypto';
import { constants, lstat, type Stats } from 'node:fs';
import { link, mkdir, open, opendir, rename, rmdir, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { BadRequestError, ConflictError, NotFoundError, ServiceError } from '../../lib/errors.js';
import { isRunning } from '../../lib/is-running.js';
import { SCRATCH } from './segments.js';

/*
 * All file access of the explorer. Each name is opened in its parent's descriptor, with `/proc/self/fd`
 * in place of openat(2); no path is resolved twice and no link is followed, so replacing a folder during
 * a request gains nothing.
 */

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK } = constants;
const { O_RDONLY, O_WRONLY } = constants;

/** Modes of created folders and files. */
const FOLDER_MODE = 0o755;
const FILE_MODE = 0o644;

const PIECE_BYTES = 64 * 1024;

/** The function of `node:fs/promises` takes twice as long, which slows down hundreds of concurrent calls. */
const statOf = promisify(lstat);

/** Maximum number of attempts to create a folder that other requests remove. */
const ATTEMPTS = 20;

export type EntryKind = 'file' | 'folder' | 'other';

export interface Entry {
  readonly name: string;
  readonly kind: EntryKind;
}

export interface FileContent {
  readonly bytes: Buffer;
  /** Modification time, never later than the real one. */
  readonly modified: Date;
  readonly mode: number;
}

export interface FileOptions {
  readonly mode?: number | undefined;
  readonly modified?: Date | undefined;
  /** True to flush the file to disk before the call returns. */
  readonly isLasting?: boolean | undefined;
}

interface ReplaceOptions extends FileOptions {
  readonly signal?: AbortSignal | undefined;
  /** A check immediately before the file takes its place; its error leaves the old file. */
  readonly check?: () => Promise<void>;
}

/** 400: an entry on the path is not a plain file or folder, for example a link. */
export class NotPlainError extends BadRequestError {
  override readonly name = 'NotPlainError';
}

/** 400: the file is larger than the limit. */
export class TooLargeError extends BadRequestError {
  override readonly name = 'TooLargeError';
}

/** An open folder; the caller that opens it closes it. */
export class Folder {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Opens the workspace's own folder, and creates it if missing; links on the way to it are the operator's. */
  static async root(path: string): Promise<Folder> {
    try {
      return new Folder(await openRoot(path));
    } catch (error) {
      throw new ServiceError(500, 'The workspace cannot be opened', undefined, undefined, {
        cause: error,
      });
    }
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  /** Opens a folder by its name. @throws NotFoundError, NotPlainError for a link */
  async folder(name: string): Promise<Folder> {
    let handle: FileHandle | undefined;
    try {
      // O_DIRECTORY is not used: with it gVisor's kernel follows a link in spite of O_NOFOLLOW.
      handle = await open(this.#at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
      if ((await handle.stat()).isDirectory()) return new Folder(handle);
    } catch (error) {
      const there = await this.stat(name);
      if (there?.isSymbolicLink()) throw new NotPlainError('path leads through a link');
      if (!there || there.isDirectory()) throw refusalOf(error);
    }
    await handle?.close();
    throw new NotPlainError('path leads through something that is not a folder');
  }

  /** Calls `use` with the opened folder at these names, made on the way if `makes`, and closes it. */
  async within<T>(
    names: readonly string[],
    use: (folder: Folder) => Promise<T>,
    { makes = false } = {},
  ): Promise<T> {
    let folder = this as Folder;
    const leave = () => (folder === this ? undefined : folder.close());
    try {
      // Only one folder is open at a time, at any depth.
      for (const name of names) {
        const next = makes ? await folder.#made(name) : await folder.folder(name);
        await leave();
        folder = next;
      }
      return await use(folder);
    } finally {
      await leave();
    }
  }

  self(): Promise<Stats> {
    return this.#handle.stat();
  }

  /** Returns the status of an entry, or undefined if it is missing; links are not followed. */
  async stat(name: string): Promise<Stats | undefined> {
    try {
      return await statOf(this.#at(name));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw refusalOf(error);
    }
  }

  /**
   * Reads a file; one that grows during the read is cut at `maxBytes`. @throws NotFoundError, TooLargeError,
   * NotPlainError at once for a link, folder or pipe
   */
  async read(name: string, maxBytes: number): Promise<FileContent> {
    const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    const handle = await open(this.#at(name), flags).catch(refuse);
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) throw new NotPlainError('path is not a regular file');
      if (stats.size > maxBytes) {
        throw new TooLargeError(`The file is larger than ${maxBytes} bytes`);
      }
      const bytes = await readBytes(handle, stats.size, maxBytes);
      return { bytes, modified: dateOf(stats.mtimeMs), mode: stats.mode & 0o777 };
    } catch (error) {
      throw refusalOf(error);
    } finally {
      await handle.close();
    }
  }

  async readIfThere(name: string, maxBytes: number): Promise<FileContent | undefined> {
    try {
      return await this.read(name, maxBytes);
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  /** Lists the entries in the folder's own order, without names that are not UTF-8. */
  async *entries(): AsyncGenerator<Entry> {
    // The path in `/proc` names the open folder, even after a rename.
    const folder = await opendir(this.#path, { encoding: 'buffer' as BufferEncoding });
    for await (const entry of folder) {
      // With this encoding names are bytes, contrary to the types.
      const name = textOf(entry.name as unknown as Buffer);
      if (name === undefined) continue;
      yield { name, kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : 'other' };
    }
  }

  /** Reports whether the folder has only files and folders, with any names. @throws the signal's reason */
  async isPlain(signal: AbortSignal): Promise<boolean> {
    // Large enough to read most folders in one call: repositories have hundreds of small ones.
    const folder = await opendir(this.#path, { bufferSize: 256 });
    for await (const entry of folder) {
      signal.throwIfAborted();
      if (!entry.isFile() && !entry.isDirectory()) return false;
    }
    return true;
  }

  /** Creates a file that must not exist. @throws ConflictError */
  async create(
    name: string,
    bytes: Uint8Array,
    { mode = FILE_MODE, modified, isLasting = true }: FileOptions = {},
  ): Promise<void> {
    const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    const handle = await open(this.#at(name), flags, mode).catch(refuse);
    try {
      await handle.writeFile(bytes);
      await handle.chmod(mode);
      if (modified) await handle.utimes(modified, modified);
      if (isLasting) await handle.datasync();
    } catch (error) {
      await this.remove(name);
      throw refusalOf(error);
    } finally {
      await handle.close();
    }
  }

  /**
   * Appends to a file, made if missing, in one write: nothing that another program writes at the same time is lost.
   * @returns the size afterwards. @throws NotPlainError; TooLargeError if the file would exceed `maxBytes`
   */
  async append(name: string, bytes: Uint8Array, maxBytes: number): Promise<number> {
    const flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    const handle = await open(this.#at(name), flags, FILE_MODE).catch(refuse);
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) throw new NotPlainError('path is not a regular file');
      if (stats.size + bytes.length > maxBytes) {
        throw new TooLargeError(`The file would be larger than ${maxBytes} bytes`);
      }
      const { bytesWritten } = await handle.write(bytes);
      if (bytesWritten < bytes.length) throw diskFull();
      await handle.datasync();
      return stats.size + bytes.length;
    } catch (error) {
      throw refusalOf(error);
    } finally {
      await handle.close();
    }
  }

  /** Moves a file of this folder, and replaces any file at the target. @throws NotPlainError for a folder */
  moveTo(name: string, target: Folder, targetName: string): Promise<void> {
    return rename(this.#at(name), target.#at(targetName)).catch(refuse);
  }

  /** Creates a hard link to a file of this folder; the new name must not exist. @throws ConflictError */
  linkTo(name: string, target: Folder, targetName: string): Promise<void> {
    return link(this.#at(name), target.#at(targetName)).catch(refuse);
  }

  /** Removes a file or link, if it exists. */
  remove(name: string): Promise<void> {
    return unlink(this.#at(name)).catch(refuseUnless('ENOENT'));
  }

  removeEmpty(name: string): Promise<void> {
    return rmdir(this.#at(name)).catch(refuseUnless('ENOENT', 'ENOTEMPTY', 'EEXIST'));
  }

  async #made(name: string): Promise<Folder> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.folder(name);
      } catch (error) {
        if (!(error instanceof NotFoundError) || attempt === ATTEMPTS) throw error;
      }
      await mkdir(this.#at(name), FOLDER_MODE).catch(refuseUnless('EEXIST'));
    }
  }

  get #path(): string {
    return `/proc/self/fd/${this.#handle.fd}`;
  }

  #at(name: string): string {
    return `${this.#path}/${name}`;
  }
}

/**
 * Replaces a file atomically, through the scratch folder on its file system: a kill leaves the old file, and a
 * partial one for `clearScratch`. @throws NotPlainError for a target that is no file; the signal's reason
 */
export async function replaceFile(
  root: Folder,
  target: { readonly folder: Folder; readonly name: string },
  bytes: Uint8Array,
  { check, signal, ...options }: ReplaceOptions = {},
): Promise<void> {
  const there = await target.folder.stat(target.name);
  if (there && !there.isFile()) {
    throw new NotPlainError(
      there.isDirectory() ? 'path is a folder' : 'path is not a regular file',
    );
  }
  const whole = { mode: there && there.mode & 0o777, ...options };
  await inScratch(root, bytes, whole, async (scratch, name) => {
    await check?.();
    // A client that gave up may have sent a newer version already.
    signal?.throwIfAborted();
    return scratch.moveTo(name, target.folder, target.name);
  });
}

/** Creates a new file atomically, so that a kill leaves it missing or complete. @throws ConflictError */
export async function createFile(
  root: Folder,
  target: { readonly folder: Folder; readonly name: string },
  bytes: Uint8Array,
): Promise<void> {
  await inScratch(root, bytes, {}, async (scratch, name) => {
    await scratch.linkTo(name, target.folder, target.name);
    await scratch.remove(name);
  });
}

/** Writes a file in the scratch folder, and moves it to its place. */
async function inScratch(
  root: Folder,
  bytes: Uint8Array,
  options: FileOptions,
  put: (scratch: Folder, name: string) => Promise<void>,
): Promise<void> {
  const name = `${process.pid}-${randomBytes(12).toString('hex')}`;
  // A concurrent write that finishes first removes the scratch folder.
  for (let attempt = 1; ; attempt += 1) {
    try {
      await root.within(
        [SCRATCH],
        async (scratch) => {
          await scratch.create(name, bytes, options);
          try {
            await put(scratch, name);
          } catch (error) {
            await scratch.remove(name);
            throw error;
          }
        },
        { makes: true },
      );
      break;
    } catch (error) {
      if (!(error instanceof NotFoundError) || attempt === ATTEMPTS) throw error;
    }
  }
  await root.removeEmpty(SCRATCH);
}

/** Removes partial files of killed writes. Must run before the first write of this process. */
export async function clearScratch(root: Folder): Promise<void> {
  try {
    await root.within([SCRATCH], async (scratch) => {
      for await (const { kind, name } of scratch.entries()) {
        if (kind === 'file' && isLeft(name)) await scratch.remove(name);
      }
    });
  } catch (error) {
    // A link or file of that name is not the platform's.
    if (!(error instanceof NotFoundError || error instanceof NotPlainError)) throw error;
    return;
  }
  await root.removeEmpty(SCRATCH);
}

/** Names of partial files; those of earlier releases have no process id. */
const SCRATCH_NAME = /^(?:(\d+)-)?[0-9a-f]{24}$/;

/** Reports whether the writer of a partial file has ended; this process has written none yet. */
function isLeft(name: string): boolean {
  const found = SCRATCH_NAME.exec(name);
  if (!found) return false;
  const pid = Number(found[1] ?? 0);
  return pid === 0 || pid === process.pid || !isRunning(pid);
}

/** First and last millisecond with a year of four digits; some file systems accept any time. */
const DATES = { first: Date.parse('0000-01-01T00:00:00Z'), last: 253_402_300_799_999 } as const;

/** Returns a file's time, never later than the real one. */
export const dateOf = (ms: number): Date =>
  new Date(Math.min(Math.max(Math.floor(ms), DATES.first), DATES.last));

async function openRoot(path: string): Promise<FileHandle> {
  try {
    return await open(path, O_RDONLY | O_DIRECTORY);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    await mkdir(path, { recursive: true });
    return open(path, O_RDONLY | O_DIRECTORY);
  }
}

/** Reads the file up to the limit if it grows, and to its end if it shrinks. */
async function readBytes(handle: FileHandle, size: number, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for (let room = size + 1; length < maxBytes; room = PIECE_BYTES) {
    const piece = Buffer.allocUnsafe(Math.min(room, maxBytes - length));
    const { bytesRead } = await handle.read(piece, 0, piece.length, null);
    if (bytesRead === 0) break;
    pieces.push(piece.subarray(0, bytesRead));
    length += bytesRead;
  }
  const [whole] = pieces;
  // Avoids a second copy of a large file in memory.
  return whole?.length === length ? whole : Buffer.concat(pieces, length);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes UTF-8; returns undefined for other bytes. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined; // decoding fails only for invalid UTF-8
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Throws a system error as the client's error. */
function refuse(error: unknown): never {
  throw refusalOf(error);
}

/** Returns a handler that ignores system errors with these codes and throws all others. */
function refuseUnless(...codes: readonly string[]): (error: unknown) => void {
  return (error) => {
    if (!codes.includes(codeOf(error))) refuse(error);
  };
}

const diskFull = () => new ServiceError(500, 'The disk is full: free some space and retry');

/** Translates a system error for the client; unknown errors are returned unchanged. */
function refusalOf(error: unknown): unknown {
  switch (codeOf(error)) {
    case 'ENOENT':
      return new NotFoundError('File not found');
    case 'ELOOP':
    case 'EMLINK':
      return new NotPlainError('path is a link');
    case 'ENOTDIR':
      return new NotPlainError('path leads through something that is not a folder');
    case 'EISDIR':
      return new NotPlainError('path is a folder');
    case 'ENXIO':
    case 'ENODEV':
      return new NotPlainError('path is not a regular file');
    case 'EXDEV':
      return new NotPlainError('path is on another file system than the workspace');
    case 'EEXIST':
      return new ConflictError('The file already exists', 'FILE_EXISTS');
    case 'ENAMETOOLONG':
      return new BadRequestError('A name in path is too long');
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new ServiceError(500, 'The file system denied the operation: check its permissions');
    case 'ENOSPC':
    case 'EDQUOT':
      return diskFull();
    default:
      return error;
  }
}
