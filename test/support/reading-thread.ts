import path from 'node:path';
import { buildSync } from 'esbuild';
import { projectRoot } from '../../dev/root.js';

let built: URL | undefined;

/** The program of threads that read pages: threads do not load TypeScript. */
export function readingThread(): URL {
  if (built) return built;
  const [program] = buildSync({
    entryPoints: [path.join(projectRoot, 'src/pages/reading-thread.ts')],
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  }).outputFiles;
  const code = Buffer.from(program?.contents ?? []).toString('base64');
  built = new URL(`data:text/javascript;base64,${code}`);
  return built;
}
