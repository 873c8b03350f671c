import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { projectRoot } from '../../dev/root.js';

let built: URL | undefined;

/**
 * Builds the program of the page-reading processes as JavaScript, because those processes cannot load
 * TypeScript.
 */
export function readingProgram(): URL {
  if (built) return built;
  const [program] = buildSync({
    entryPoints: [path.join(projectRoot, 'src/pages/reading-process.ts')],
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  }).outputFiles;
  const folder = path.join(projectRoot, 'node_modules', '.cache');
  const file = path.join(folder, 'reading-process.mjs');
  mkdirSync(folder, { recursive: true });
  // The rename is atomic: other test processes build the same file concurrently.
  writeFileSync(`${file}.${process.pid}`, program?.contents ?? '');
  renameSync(`${file}.${process.pid}`, file);
  built = pathToFileURL(file);
  return built;
}
