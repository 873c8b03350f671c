import { BadRequestError } from '../../lib/errors.js';
import { replaceFile, textOf, type Folder } from './folder.js';
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

/** Writes UTF-8 and returns its size in bytes. @throws BadRequestError; the signal's reason, unchanged */
export async function writeFile(
  root: Folder,
  path: string,
  content: string,
  signal?: AbortSignal,
): Promise<{ readonly path: string; readonly size: number }> {
  const { folders, name } = placeOf(path);
  if (/\p{Surrogate}/u.test(content)) {
    throw new BadRequestError('content must be well-formed text');
  }
  const bytes = Buffer.from(content);
  if (bytes.length > MAX_FILE_BYTES) {
    throw new BadRequestError(`content must be at most ${MAX_FILE_BYTES} bytes`);
  }
  await root.within(folders, (folder) => replaceFile(root, { folder, name }, bytes, { signal }), {
    makes: true,
  });
  return { path, size: bytes.length };
}

function placeOf(path: string): { folders: string[]; name: string } {
  const folders = segmentsOf(path);
  const name = folders.pop() ?? ''; // a parsed path has at least one name
  return { folders, name };
}
