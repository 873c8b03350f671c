import { readFile } from 'node:fs/promises';
import { UnavailableError } from './lib/errors.js';

/**
 * Returns the program of helper containers that the build made, beside the folder of this file or of its
 * bundle.
 *
 * @throws UnavailableError if it is missing.
 */
export async function builtHelper(): Promise<string> {
  try {
    return await readFile(new URL('../workspace-helper.js', import.meta.url), 'utf8');
  } catch (cause) {
    throw new UnavailableError("Agents' files are unavailable on this host: run npm run build", {
      cause,
    });
  }
}
