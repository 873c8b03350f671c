import { readFile } from 'node:fs/promises';
import { UnavailableError } from './lib/errors.js';

/**
 * The program of helper containers, as the build made it, beside the folder of this file, or of the bundle
 * that this is in.
 *
 * @throws UnavailableError when it is missing.
 */
export async function builtHelper(): Promise<string> {
  try {
    return await readFile(new URL('../workspace-helper.js', import.meta.url), 'utf8');
  } catch (cause) {
    throw new UnavailableError('Files of agents are not served: run npm run build', { cause });
  }
}
