import { BadRequestError } from '../../lib/errors.js';
import { segmentsOf } from '../files/segments.js';

/** Files of the runtime's memory beside its folder. */
export const MEMORY_FILES = ['MEMORY.md', 'USER.md', 'SOUL.md'] as const;
export const MEMORY_FOLDER = 'memory';

const ROOT_FILES: ReadonlySet<string> = new Set(MEMORY_FILES);

export const isMemoryName = (name: string): boolean => name.endsWith('.md');

/** Checks a path from a client. @throws BadRequestError for any path but those of the runtime's memory */
export function checkMemoryPath(path: string): void {
  const [first = '', ...below] = segmentsOf(path);
  const last = below.at(-1);
  const isMemory =
    last === undefined ? ROOT_FILES.has(first) : first === MEMORY_FOLDER && isMemoryName(last);
  if (!isMemory) {
    throw new BadRequestError(
      `path must be ${MEMORY_FILES.join(', ')} or a .md file in ${MEMORY_FOLDER}/`,
    );
  }
}
