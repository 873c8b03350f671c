import path from 'node:path';
import { spawn, type ChildProcess } from 'node:child_process';
import { projectRoot } from '../dev/root.js';
import { stopping } from '../dev/processes/stopping.js';

/** The native one. `dependency-cruiser` and `npm run shape` stand on the library of the one before. */
const COMPILER = '@typescript/native/bin/tsc';

/** What the sources are checked with, beside the tests. */
const CHECKS = [
  { name: 'types', program: COMPILER, args: ['-p', '.'] },
  {
    name: "types of the pages' script",
    program: COMPILER,
    args: ['-p', 'api/web/pages/static'],
  },
  {
    name: 'lint',
    program: 'oxlint/bin/oxlint',
    args: ['.'],
  },
  {
    name: 'rooms',
    program: 'dependency-cruiser/bin/dependency-cruise.mjs',
    args: ['--config', '.dependency-cruiser.mjs', '.'],
  },
  {
    name: 'format',
    program: 'prettier/bin/prettier.cjs',
    args: ['--check', '--log-level', 'warn', '--cache', '.'],
  },
];

/** How the checks went. */
export interface Checked {
  readonly passed: readonly string[];
  /** With what each of them said. */
  readonly failed: readonly { readonly name: string; readonly output: string }[];
}

/** Runs every check, one after the other, and says nothing: tests run meanwhile. */
export async function runChecks(): Promise<Checked> {
  const passed: string[] = [];
  const failed: { name: string; output: string }[] = [];
  for (const { name, program, args } of CHECKS) {
    const output: string[] = [];
    const child = runNode([path.join(projectRoot, 'node_modules', program), ...args], 'pipe');
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => output.push(chunk.toString()));
    }
    if ((await codeOf(child)) === 0) passed.push(name);
    else failed.push({ name, output: output.join('') });
  }
  return { passed, failed };
}

/** Runs a Node program in this terminal and returns the code it ended with. */
export function runVisibly(args: readonly string[], env = process.env): Promise<number> {
  return codeOf(runNode(args, 'inherit', env));
}

function runNode(args: readonly string[], stdio: 'pipe' | 'inherit', env = process.env) {
  return spawn(process.execPath, args, {
    cwd: projectRoot,
    env,
    stdio: ['inherit', stdio, stdio],
    signal: stopping.signal,
  });
}

function codeOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('close', (code) => resolve(code ?? 1));
  });
}
