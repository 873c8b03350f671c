import { NotFoundError } from '../../lib/errors.js';
import { etagOf } from '../files/etag.js';
import { MAX_FILE_BYTES } from '../files/files.js';
import { dateOf, NotPlainError, textOf, TooLargeError, type Folder } from '../files/folder.js';
import { ListingRoom } from '../files/listing.js';
import { isMemoryName, MEMORY_FILES, MEMORY_FOLDER } from './memory-paths.js';

const MAX_FILES = 1_000;

/** Maximum number of entries that are read, and of levels of folders. */
const MAX_ENTRIES = 10_000;
const MAX_LEVELS = 16;

const MAX_MATCHES = 50;

/** Maximum number of characters of a matching line in the answer, and those of them before the match. */
const MAX_TEXT = 500;
const TEXT_BEFORE = 100;

export interface MemoryFile {
  readonly path: string;
  /** Size in bytes. */
  readonly size: number;
  /** Modification time in ISO 8601. */
  readonly modified: string;
  /** Null for a file that is too large to be read. */
  readonly etag: string | null;
}

export interface MemoryListing {
  readonly files: readonly MemoryFile[];
  /** True if files are missing because there are too many. */
  readonly truncated?: true;
}

export interface MemoryMatch {
  readonly path: string;
  /** Number of the line, from 1. */
  readonly line: number;
  readonly text: string;
}

/** Lists the files of the memory: those beside the folder, then the folder's, last names first. */
export async function listMemory(root: Folder, signal?: AbortSignal): Promise<MemoryListing> {
  const { isCut, paths } = await memoryPaths(root, signal);
  const room = new ListingRoom();
  const files: MemoryFile[] = [];
  for (const path of paths) {
    signal?.throwIfAborted();
    const file = await unlessGone(() => within(root, path, describe));
    if (!file) continue;
    const fits = room.take({ path, modified: file.modified, etag: file.etag ?? '' });
    if (!fits || files.length === MAX_FILES) return { files, truncated: true };
    files.push({ path, ...file });
  }
  return isCut ? { files, truncated: true } : { files };
}

/** Finds lines that contain a text, in any case. @returns the first 50, in the order of the listing. */
export async function searchMemory(
  root: Folder,
  query: string,
  signal?: AbortSignal,
): Promise<readonly MemoryMatch[]> {
  const wanted = query.toLowerCase();
  const matches: MemoryMatch[] = [];
  const { paths } = await memoryPaths(root, signal);
  for (const path of paths) {
    signal?.throwIfAborted();
    const content = await unlessGone(() =>
      within(root, path, async (folder, name) => (await folder.read(name, MAX_FILE_BYTES)).bytes),
    );
    if (!content || content.includes(0)) continue;
    const lines = textOf(content)?.split(/\r?\n/) ?? [];
    for (const [index, text] of lines.entries()) {
      const at = text.toLowerCase().indexOf(wanted);
      if (at < 0) continue;
      const from = text.length <= MAX_TEXT ? 0 : Math.max(0, at - TEXT_BEFORE);
      // A cut may split a surrogate pair.
      const shown = Buffer.from(text.slice(from, from + MAX_TEXT)).toString();
      matches.push({ path, line: index + 1, text: shown });
      if (matches.length === MAX_MATCHES) return matches;
    }
  }
  return matches;
}

async function memoryPaths(root: Folder, signal: AbortSignal | undefined) {
  const found: string[] = [];
  let entries = 0;
  let level: (readonly string[])[] = [[MEMORY_FOLDER]];
  for (let depth = 0; depth < MAX_LEVELS && level.length > 0; depth += 1) {
    const next: (readonly string[])[] = [];
    for (const names of level) {
      await unlessGone(() =>
        root.within(names, async (folder) => {
          for await (const { kind, name } of folder.entries()) {
            signal?.throwIfAborted();
            if (++entries > MAX_ENTRIES) return;
            if (kind === 'folder') next.push([...names, name]);
            else if (kind === 'file' && isMemoryName(name)) found.push([...names, name].join('/'));
          }
        }),
      );
    }
    level = next;
  }
  const isCut = entries > MAX_ENTRIES || level.length > 0;
  // Notes are named by their day: the last names are the newest.
  const paths = [...MEMORY_FILES, ...found.sort().reverse()];
  // Some of the first may be missing.
  const most = MAX_FILES + MEMORY_FILES.length;
  return { paths: paths.slice(0, most), isCut: isCut || paths.length > most };
}

async function describe(folder: Folder, name: string): Promise<Omit<MemoryFile, 'path'>> {
  try {
    const { bytes, modified } = await folder.read(name, MAX_FILE_BYTES);
    return { size: bytes.length, modified: modified.toISOString(), etag: etagOf(bytes) };
  } catch (error) {
    if (!(error instanceof TooLargeError)) throw error;
    const stats = await folder.stat(name);
    if (!stats) throw new NotFoundError();
    return { size: stats.size, modified: dateOf(stats.mtimeMs).toISOString(), etag: null };
  }
}

function within<T>(
  root: Folder,
  path: string,
  use: (folder: Folder, name: string) => Promise<T>,
): Promise<T> {
  const folders = path.split('/');
  const name = folders.pop() ?? ''; // a path of the listing has at least one name
  return root.within(folders, (folder) => use(folder, name));
}

/** Returns undefined for anything but a plain file or folder, a file that is too large, or a missing one. */
async function unlessGone<T>(use: () => Promise<T>): Promise<T | undefined> {
  try {
    return await use();
  } catch (error) {
    const isGone =
      error instanceof NotFoundError ||
      error instanceof NotPlainError ||
      error instanceof TooLargeError;
    if (isGone) return undefined;
    throw error;
  }
}
