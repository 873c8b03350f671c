import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json, both for the sources and for a build. */
export const projectRoot = findRoot(path.dirname(fileURLToPath(import.meta.url)));

/** Returns the path of a program in the developers' build. */
export function builtProgram(...parts: readonly string[]): string {
  return path.join(projectRoot, 'dist-dev', ...parts);
}

function findRoot(folder: string): string {
  if (existsSync(path.join(folder, 'package.json'))) return folder;
  const parent = path.dirname(folder);
  return parent === folder ? folder : findRoot(parent);
}
