import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';

/**
 * Returns the entries below a folder that are not folders. Follows no links, as Node's own walk does from 26
 * on.
 */
export async function filesBelow(folder: string): Promise<Dirent[]> {
  const found: Dirent[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) found.push(...(await filesBelow(path.join(folder, entry.name))));
    else found.push(entry);
  }
  return found;
}
