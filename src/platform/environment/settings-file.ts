import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as z from 'zod';

const MAX_BYTES = 1024 * 1024;

/** A file of settings that cannot be used; the message is the end of a sentence that names the file. */
export class SettingsFileError extends Error {
  override readonly name = 'SettingsFileError';
}

/** Returns the text of a file, of the shipped one unless a file is given. @throws SettingsFileError */
export function readSettingsFile(shipped: string, file: string = shippedFile(shipped)): string {
  try {
    if (statSync(file).size <= MAX_BYTES) return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new SettingsFileError('cannot be read', { cause });
  }
  throw new SettingsFileError('is larger than 1 MiB');
}

/** Parses the text of a file. @throws SettingsFileError */
export function parseSettings(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SettingsFileError('is not JSON');
  }
}

/** Returns the place and the kind of the first problem, such as `inputCost (Invalid input)`. */
export function placeOf({ issues: [issue] }: z.ZodError): string {
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const place = [...(issue?.path ?? []), ...keys].map(String).join('.');
  return `${place === '' ? 'entry' : place} (${issue?.message ?? 'it is wrong'})`;
}

/** Returns the problem of a file as a sentence; none if `load` reads the file. */
export function problemOfFile(load: () => unknown, named: string): readonly string[] {
  try {
    load();
    return [];
  } catch (error) {
    if (!(error instanceof SettingsFileError)) throw error;
    return [`${named} ${error.message}`];
  }
}

/** Returns a shipped file: at the top of the repository, and of `dist` for built programs and their chunks. */
function shippedFile(name: string): string {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const file = path.join(folder, name);
    const above = path.dirname(folder);
    if (existsSync(file) || above === folder) return file;
    folder = above;
  }
}
