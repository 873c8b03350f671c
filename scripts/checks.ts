import path from 'node:path';
import { spawn, type ChildProcess } from 'node:child_process';
import { projectRoot } from '../dev/root.js';
import { stopping } from '../dev/processes/stopping.js';

/** The native compiler. `dependency-cruiser` and `npm run shape` use the library of the earlier one. */
const COMPILER = '@typescript/native/bin/tsc';

/** Several threads check the same types several times, which costs the tests beside them a third more CPU. */
const ONE_THREAD = '--singleThreaded';

interface Check {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  /** True for a check that takes more than a few seconds of CPU. */
  readonly isSlow?: true;
}

/** Checks of the sources besides the tests. */
const CHECKS: readonly Check[] = [
  { name: 'types', program: COMPILER, args: ['-p', '.', ONE_THREAD] },
  {
    name: "types of the pages' script",
    program: COMPILER,
    args: ['-p', 'api/web/pages/static', ONE_THREAD],
  },
  {
    name: 'lint',
    program: 'oxlint/bin/oxlint',
    args: ['.'],
    isSlow: true,
  },
  {
    name: 'rooms',
    program: 'dependency-cruiser/bin/dependency-cruise.mjs',
    args: ['--config', '.dependency-cruiser.mjs', '.'],
    isSlow: true,
  },
  {
    name: 'format',
    program: 'oxfmt/bin/oxfmt',
    args: ['--check', '.'],
  },
];

/** Results of the checks. */
export interface Checked {
  readonly passed: readonly string[];
  /** Failed checks with their output. */
  readonly failed: readonly { readonly name: string; readonly output: string }[];
}

/**
 * Runs the checks, one after the other, and prints nothing, since tests run at the same time.
 *
 * @param isFast true without the slow checks.
 */
export async function runChecks(isFast: boolean): Promise<Checked> {
  const passed: string[] = [];
  const failed: { name: string; output: string }[] = [];
  for (const { name, program, args } of CHECKS.filter((each) => !isFast || !each.isSlow)) {
    const output: string[] = [];
    const file = path.join(projectRoot, 'node_modules', program);
    const child = spawn(process.execPath, [file, ...args], {
      cwd: projectRoot,
      stdio: ['inherit', 'pipe', 'pipe'],
      signal: stopping.signal,
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => output.push(chunk.toString()));
    }
    if ((await codeOf(child)) === 0) passed.push(name);
    else failed.push({ name, output: output.join('') });
  }
  return { passed, failed };
}

function codeOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('close', (code) => resolve(code ?? 1));
  });
}
