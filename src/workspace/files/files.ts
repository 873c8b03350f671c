import { BadRequestError, ConflictError, NotFoundError } from '../../lib/errors.js';
import { etagOf } from './etag.js';
import { dateOf, replaceFile, textOf, type Folder } from './folder.js';
import { segmentsOf } from './segments.js';

export const MAX_FILE_BYTES = 1_048_576;

export interface ReadFile {
  readonly path: string;
  readonly content: string;
  /** Size in bytes. */
  readonly size: number;
  /** Modification time in ISO 8601. */
  readonly modified: string;
  /** Set if the content is not text. */
  readonly encoding?: 'base64';
}

/** Reads a file. @throws BadRequestError, NotFoundError */
export async function readFile(root: Folder, path: string): Promise<ReadFile> {
  const { folders, name } = placeOf(path);
  const { bytes, modified } = await root.within(folders, (folder) =>
    folder.read(name, MAX_FILE_BYTES),
  );
  const text = bytes.includes(0) ? undefined : textOf(bytes);
  return {
    path,
    content: text ?? bytes.toString('base64'),
    size: bytes.length,
    modified: modified.toISOString(),
    ...(text === undefined && { encoding: 'base64' }),
  };
}

export interface StoredFile {
  readonly path: string;
  /** Size in bytes. */
  readonly size: number;
  /** Modification time in ISO 8601. */
  readonly modified: string;
  readonly etag: string;
}

interface WriteOptions {
  /** The etag that the file must have. */
  readonly etag?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Replaces a file by UTF-8. @throws BadRequestError; ConflictError for another etag; the signal's reason */
export function writeFile(
  root: Folder,
  path: string,
  content: string,
  { etag, signal }: WriteOptions = {},
): Promise<StoredFile> {
  const bytes = bytesOf(content);
  return changed(root, path, etag, async (folder, name) => {
    const check = () => requireEtag(folder, name, etag);
    await replaceFile(root, { folder, name }, bytes, { check, signal });
    const stats = await folder.stat(name);
    const modified = dateOf(stats?.mtimeMs ?? Date.now()).toISOString();
    return { path, size: bytes.length, modified, etag: etagOf(bytes) };
  });
}

/**
 * Appends UTF-8 to a file in one write, and makes the file if missing; the answer has what other programs wrote.
 * @throws BadRequestError; ConflictError for another etag; the signal's reason
 */
export function appendFile(
  root: Folder,
  path: string,
  content: string,
  { etag, signal }: WriteOptions = {},
): Promise<StoredFile> {
  const bytes = bytesOf(content);
  return changed(root, path, etag, async (folder, name) => {
    await requireEtag(folder, name, etag);
    signal?.throwIfAborted();
    await folder.append(name, bytes, MAX_FILE_BYTES);
    const now = await folder.read(name, MAX_FILE_BYTES);
    const modified = now.modified.toISOString();
    return { path, size: now.bytes.length, modified, etag: etagOf(now.bytes) };
  });
}

/** Calls `change` in the file's folder, which is made if missing unless the file has to exist. */
async function changed(
  root: Folder,
  path: string,
  etag: string | undefined,
  change: (folder: Folder, name: string) => Promise<StoredFile>,
): Promise<StoredFile> {
  const { folders, name } = placeOf(path);
  try {
    return await root.within(folders, (folder) => change(folder, name), {
      makes: etag === undefined,
    });
  } catch (error) {
    if (etag !== undefined && error instanceof NotFoundError) throw otherEtag();
    throw error;
  }
}

const otherEtag = () =>
  new ConflictError('The file has changed since it had this etag: read it again', 'FILE_CHANGED');

async function requireEtag(folder: Folder, name: string, etag: string | undefined): Promise<void> {
  if (etag === undefined) return;
  const there = await folder.readIfThere(name, MAX_FILE_BYTES);
  if (there && etagOf(there.bytes) === etag) return;
  throw otherEtag();
}

function bytesOf(content: string): Buffer {
  if (/\p{Surrogate}/u.test(content)) {
    throw new BadRequestError('content must be well-formed text');
  }
  const bytes = Buffer.from(content);
  if (bytes.length > MAX_FILE_BYTES) {
    throw new BadRequestError(`content must be at most ${MAX_FILE_BYTES} bytes`);
  }
  return bytes;
}

function placeOf(path: string): { folders: string[]; name: string } {
  const folders = segmentsOf(path);
  const name = folders.pop() ?? ''; // a parsed path has at least one name
  return { folders, name };
}
