import path from 'node:path';
import { build } from 'esbuild';
import { projectRoot } from '../../dev/root.js';

let built: Promise<string> | undefined;

/** Builds the program of helper containers as the build does. */
export function workspaceHelper(): Promise<string> {
  built ??= build({
    entryPoints: [path.join(projectRoot, 'src/workspace/helper-program.ts')],
    write: false,
    bundle: true,
    minify: true,
    keepNames: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
  }).then(({ outputFiles: [program] }) => program?.text ?? '');
  return built;
}
