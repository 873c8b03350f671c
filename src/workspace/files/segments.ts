import { BadRequestError } from '../../lib/errors.js';

/** Bytes of a whole path, and of one name of it. */
const MAX_PATH_BYTES = 4_096;
const MAX_NAME_BYTES = 255;

/** Where what is being written waits for its place, in the folder of the workspace: nobody else's to use. */
export const SCRATCH = '.agent-platform-tmp';

/** What git keeps, in any spelling that some file system takes for it. */
const GIT_FOLDER = /^\.git[ .]*$|^git~1$/i;

/**
 * The names of a path that somebody gave, from the workspace's folder on.
 *
 * @throws BadRequestError for whatever is not a plain relative path, and for what git or we keep there.
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

function checkName(name: string): void {
  if (name === '' || name === '.') throw new BadRequestError('path has an empty segment');
  if (name === '..') throw new BadRequestError('path must not leave the workspace');
  if (name.includes('\\') || name.includes('\0')) {
    throw new BadRequestError('path has a backslash or a NUL');
  }
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new BadRequestError(`a name in path must be at most ${MAX_NAME_BYTES} bytes`);
  }
  if (GIT_FOLDER.test(name)) throw new BadRequestError('.git is not read or written');
  if (name === SCRATCH) throw new BadRequestError(`${SCRATCH} is not read or written`);
}
