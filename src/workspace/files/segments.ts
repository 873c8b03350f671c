import { BadRequestError } from '../../lib/errors.js';

const MAX_PATH_BYTES = 4_096;
const MAX_NAME_BYTES = 255;

/** Folder in the workspace for files that are being written; reserved for the platform. */
export const SCRATCH = '.agent-platform-tmp';

/** Characters that HFS+ ignores in names, as git lists them. */
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/** Names of `.git` without what file systems ignore: its own, and its short ones on NTFS and FAT. */
const GIT_FOLDER = /^(?:\.git|git~\d+|gi[0-9a-f]{4}~\d+)$/;

/**
 * Splits a path from a client into names, starting at the workspace's folder.
 * @throws BadRequestError for anything but a plain relative path, and for reserved folders of git and the
 * platform.
 */
export function segmentsOf(path: string): string[] {
  if (path === '') throw new BadRequestError('path required');
  if (/\p{Surrogate}/u.test(path)) throw new BadRequestError('path must be well-formed text');
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw new BadRequestError(`path must be at most ${MAX_PATH_BYTES} bytes`);
  }
  if (path.startsWith('/') || /^[a-z]:/i.test(path)) {
    throw new BadRequestError('path must be relative to the workspace');
  }
  const names = path.split('/');
  for (const name of names) checkName(name);
  return names;
}

/** Removes the end that NTFS ignores: dots and spaces, and a stream such as `::$INDEX_ALLOCATION`. */
function withoutIgnoredEnd(name: string): string {
  const [file = ''] = name.split(':', 1);
  let end = file.length;
  while (end > 0 && ' .'.includes(file.charAt(end - 1))) end--;
  return file.slice(0, end);
}

function checkName(name: string): void {
  if (name === '' || name === '.') throw new BadRequestError('path has an empty segment');
  if (name === '..') throw new BadRequestError('path must not leave the workspace');
  if (name.includes('\\') || name.includes('\0')) {
    throw new BadRequestError('path has a backslash or a NUL');
  }
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new BadRequestError(`a name in path must be at most ${MAX_NAME_BYTES} bytes`);
  }
  const resolved = withoutIgnoredEnd(name.replace(IGNORED, '')).toLowerCase();
  if (GIT_FOLDER.test(resolved)) throw new BadRequestError('.git cannot be read or written here');
  if (resolved === SCRATCH)
    throw new BadRequestError(`${SCRATCH} is reserved and cannot be read or written`);
}
