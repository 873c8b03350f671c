import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { projectRoot } from '../../dev/root.js';

let built: URL | undefined;

/** The program of threads that read pages: threads do not load TypeScript. */
export function readingThread(): URL {
  if (built) return built;
  const outfile = path.join(mkdtempSync(path.join(tmpdir(), 'reading-thread-')), 'thread.mjs');
  buildSync({
    entryPoints: [path.join(projectRoot, 'src/pages/reading-thread.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
  built = pathToFileURL(outfile);
  return built;
}
