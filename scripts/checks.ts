import path from 'node:path';
import { spawn } from 'node:child_process';
import { projectRoot } from '../dev/root.js';
import { stopping } from '../dev/processes/stopping.js';

/** What the sources are checked with before the tests run. */
const CHECKS = [
  { name: 'types', program: 'typescript/bin/tsc', args: ['-p', '.'] },
  {
    name: 'lint',
    program: 'eslint/bin/eslint.js',
    args: ['.', '--cache', '--cache-location', 'node_modules/.cache/eslint'],
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

/** Runs every check, one after the other. Returns the names of those that failed. */
export async function runChecks(): Promise<{ passed: string[]; failed: string[] }> {
  const passed: string[] = [];
  const failed: string[] = [];
  for (const { name, program, args } of CHECKS) {
    const code = await runVisibly([path.join(projectRoot, 'node_modules', program), ...args]);
    (code === 0 ? passed : failed).push(name);
  }
  return { passed, failed };
}

/** Runs a Node program in this terminal and returns the code it ended with. */
export async function runVisibly(args: readonly string[], env = process.env): Promise<number> {
  const child = spawn(process.execPath, args, {
    cwd: projectRoot,
    env,
    stdio: 'inherit',
    signal: stopping.signal,
  });
  return new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
