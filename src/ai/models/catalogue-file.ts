import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CatalogueError, readCatalogue, type Catalogue } from './catalogue.js';

export const SHIPPED_FILE = 'models.json';

const MAX_BYTES = 1024 * 1024;

/** Reads a file of models, by default the shipped one. @throws CatalogueError */
export function loadCatalogue(file: string = shippedFile()): Catalogue {
  return readCatalogue(textOf(file));
}

function textOf(file: string): string {
  try {
    if (statSync(file).size <= MAX_BYTES) return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CatalogueError('cannot be read', { cause });
  }
  throw new CatalogueError('is larger than 1 MiB');
}

/** Returns the shipped file: at the top of the repository, and of `dist` for built programs and their chunks. */
function shippedFile(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const file = path.join(folder, SHIPPED_FILE);
    const above = path.dirname(folder);
    if (existsSync(file) || above === folder) return file;
    folder = above;
  }
}
