import { randomBytes } from 'node:crypto';
import { constants, lstat, type Stats } from 'node:fs';
import { link, mkdir, open, opendir, rename, rmdir, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { BadRequestError, ConflictError, NotFoundError, ServiceError } from '../../lib/errors.js';
import { SCRATCH } from './segments.js';

/*
 * All that the explorer opens, it opens here: each name in its parent's descriptor, for which
 * `/proc/self/fd` stands in for openat(2). A path is never looked up a second time, and a link is never
 * followed, so it does not matter what is put in the place of a folder meanwhile.
 */

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } =
  constants;

/** Of what is made. */
const FOLDER_MODE = 0o755;
const FILE_MODE = 0o644;

const PIECE_BYTES = 64 * 1024;

/** That of `node:fs/promises` takes twice as long, which hundreds at once are slowed down by. */
const statOf = promisify(lstat);

/** How often what others take away again is made. */
const ATTEMPTS = 20;

export type EntryKind = 'file' | 'folder' | 'other';

export interface Entry {
  readonly name: string;
  readonly kind: EntryKind;
}

export interface FileContent {
  readonly bytes: Buffer;
  /** Never later than it was. */
  readonly modified: Date;
  readonly mode: number;
}

export interface FileOptions {
  readonly mode?: number | undefined;
  readonly modified?: Date | undefined;
  /** Whether it is on the disk when that is told. */
  readonly isLasting?: boolean | undefined;
}

/** What is in the way of a path. */
export class NotPlainError extends BadRequestError {}

/** It has more bytes than are read. */
export class TooLargeError extends BadRequestError {}

/** An open folder. Whoever opens one closes it. */
export class Folder {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** The workspace's own, made when it is not there; links on the way to it are the operator's. */
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

  /** @throws NotFoundError, NotPlainError for a link */
  async folder(name: string): Promise<Folder> {
    let handle: FileHandle | undefined;
    try {
      // Not by O_DIRECTORY: with that gVisor's kernel follows a link in spite of O_NOFOLLOW.
      handle = await open(this.#at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
      if ((await handle.stat()).isDirectory()) return new Folder(handle);
    } catch (error) {
      const there = await this.stat(name);
      if (there?.isSymbolicLink()) throw new NotPlainError('path leads through a link');
      if (!there || there.isDirectory()) throw refusalOf(error);
    }
    await handle?.close();
    throw new NotPlainError('path leads through what is no folder');
  }

  /** What the folder at these names is used for; it is closed afterwards. @param makes what is missing. */
  async within<T>(
    names: readonly string[],
    use: (folder: Folder) => Promise<T>,
    { makes = false } = {},
  ): Promise<T> {
    let folder = this as Folder;
    const leave = () => (folder === this ? undefined : folder.close());
    try {
      // One is open at a time, however deep that is.
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

  /** Of the folder that is open. */
  self(): Promise<Stats> {
    return this.#handle.stat();
  }

  /** Undefined when it is not there. A link is what it is itself. */
  async stat(name: string): Promise<Stats | undefined> {
    try {
      return await statOf(this.#at(name));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw refusalOf(error);
    }
  }

  /**
   * @throws NotFoundError
   * @throws NotPlainError for a link, a folder, a pipe: none of them is waited for
   * @throws TooLargeError for a file of more than so many bytes; what grows meanwhile is cut there.
   */
  async read(name: string, maxBytes: number): Promise<FileContent> {
    const handle = await open(this.#at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY).catch(
      (error: unknown) => {
        throw refusalOf(error);
      },
    );
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) throw new NotPlainError('path is not a regular file');
      if (stats.size > maxBytes) {
        throw new TooLargeError(`The file is larger than ${maxBytes} bytes`);
      }
      const bytes = await readBytes(handle, stats.size, maxBytes);
      return { bytes, modified: new Date(Math.floor(stats.mtimeMs)), mode: stats.mode & 0o777 };
    } catch (error) {
      throw refusalOf(error);
    } finally {
      await handle.close();
    }
  }

  /** The same, undefined for what is not there. */
  async readIfThere(name: string, maxBytes: number): Promise<FileContent | undefined> {
    try {
      return await this.read(name, maxBytes);
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  /** Entries in the folder's own order; names that are not UTF-8 are left out. */
  async *entries(): AsyncGenerator<Entry> {
    // What `/proc` names here is the folder that is open, whatever its name is by now.
    const folder = await opendir(this.#path, { encoding: 'buffer' as BufferEncoding });
    for await (const entry of folder) {
      // With that encoding names are bytes, which the types do not know.
      const name = textOf(entry.name as unknown as Buffer);
      if (name === undefined) continue;
      yield { name, kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : 'other' };
    }
  }

  /**
   * Whether there is nothing but files and folders in it, whatever their names.
   *
   * @throws the signal's reason
   */
  async isPlain(signal: AbortSignal): Promise<boolean> {
    // Most of them at once: repositories have hundreds of small folders.
    const folder = await opendir(this.#path, { bufferSize: 256 });
    for await (const entry of folder) {
      signal.throwIfAborted();
      if (!entry.isFile() && !entry.isDirectory()) return false;
    }
    return true;
  }

  /** Makes a file that must not be there. @throws ConflictError */
  async create(
    name: string,
    bytes: Uint8Array,
    { mode = FILE_MODE, modified, isLasting = true }: FileOptions = {},
  ): Promise<void> {
    const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    const handle = await open(this.#at(name), flags, mode).catch((error: unknown) => {
      throw refusalOf(error);
    });
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

  /** Moves a file of this folder over whatever file is there. @throws NotPlainError for a folder */
  async moveTo(name: string, target: Folder, targetName: string): Promise<void> {
    try {
      await rename(this.#at(name), target.#at(targetName));
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /** Gives a file of this folder one more name, which must not be there. @throws ConflictError */
  async linkTo(name: string, target: Folder, targetName: string): Promise<void> {
    try {
      await link(this.#at(name), target.#at(targetName));
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /** A file or link; nothing when it is not there. */
  async remove(name: string): Promise<void> {
    try {
      await unlink(this.#at(name));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw refusalOf(error);
    }
  }

  /** An empty folder: nothing when it is not there, or is not empty. */
  async removeEmpty(name: string): Promise<void> {
    try {
      await rmdir(this.#at(name));
    } catch (error) {
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw refusalOf(error);
    }
  }

  async #made(name: string): Promise<Folder> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.folder(name);
      } catch (error) {
        if (!(error instanceof NotFoundError) || attempt === ATTEMPTS) throw error;
      }
      await mkdir(this.#at(name), FOLDER_MODE).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw refusalOf(error);
      });
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
 * Puts a file in its place whole: it is written into a folder of the workspace's own, and moved. Who is
 * killed meanwhile leaves the old one, and a piece that `clearScratch` finds.
 *
 * @param root of the workspace, on whose file system the target is.
 * @throws NotPlainError for a folder, link or special file that is in the way; the signal's reason, with what
 *   was there in its place
 */
export async function replaceFile(
  root: Folder,
  target: { readonly folder: Folder; readonly name: string },
  bytes: Uint8Array,
  { signal, ...options }: FileOptions & { readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  const there = await target.folder.stat(target.name);
  if (there && !there.isFile()) {
    throw new NotPlainError(
      there.isDirectory() ? 'path is a folder' : 'path is not a regular file',
    );
  }
  const whole = { mode: there && there.mode & 0o777, ...options };
  await inScratch(root, bytes, whole, (scratch, name) => {
    // Who gave up may have sent a newer one.
    signal?.throwIfAborted();
    return scratch.moveTo(name, target.folder, target.name);
  });
}

/**
 * Makes a file that must not be there, whole: who is killed meanwhile, or the machine's power, has made none, or
 * all of it.
 *
 * @throws ConflictError
 */
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

/** Writes a piece, and puts it where it belongs. */
async function inScratch(
  root: Folder,
  bytes: Uint8Array,
  options: FileOptions,
  put: (scratch: Folder, name: string) => Promise<void>,
): Promise<void> {
  const name = randomBytes(12).toString('hex');
  // Whoever is done first takes the folder away.
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

/** Removes what was being written when somebody was killed. Nobody writes there meanwhile. */
export async function clearScratch(root: Folder): Promise<void> {
  try {
    await root.within([SCRATCH], async (scratch) => {
      for await (const { kind, name } of scratch.entries()) {
        if (kind === 'file' && /^[0-9a-f]{24}$/.test(name)) await scratch.remove(name);
      }
    });
  } catch (error) {
    // A link or a file of that name is not ours.
    if (!(error instanceof NotFoundError || error instanceof NotPlainError)) throw error;
    return;
  }
  await root.removeEmpty(SCRATCH);
}

async function openRoot(path: string): Promise<FileHandle> {
  try {
    return await open(path, O_RDONLY | O_DIRECTORY);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    await mkdir(path, { recursive: true });
    return open(path, O_RDONLY | O_DIRECTORY);
  }
}

/** What grows is read to the bound, and what shrinks to its end. */
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
  // A large one is not there twice.
  return whole?.length === length ? whole : Buffer.concat(pieces, length);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined for what is not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined; // it throws for nothing else
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** What the system's errors mean to who asked; others stay what they are. */
function refusalOf(error: unknown): unknown {
  switch (codeOf(error)) {
    case 'ENOENT':
      return new NotFoundError('File not found');
    case 'ELOOP':
    case 'EMLINK':
      return new NotPlainError('path is a link');
    case 'ENOTDIR':
      return new NotPlainError('path leads through what is no folder');
    case 'EISDIR':
      return new NotPlainError('path is a folder');
    case 'ENXIO':
    case 'ENODEV':
      return new NotPlainError('path is not a regular file');
    case 'EXDEV':
      return new NotPlainError('path is on another file system than the workspace');
    case 'EEXIST':
      return new ConflictError('The file is there already');
    case 'ENAMETOOLONG':
      return new BadRequestError('A name in path is too long');
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new ServiceError(500, 'The file system does not allow it');
    case 'ENOSPC':
    case 'EDQUOT':
      return new ServiceError(500, 'The disk is full');
    default:
      return error;
  }
}
