import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { say } from '../dev/report.js';
import { builtProgram, projectRoot } from '../dev/root.js';
import { stopping } from '../dev/processes/stopping.js';
import { FAILED_TESTS_FILE } from './failed-tests.js';
import { runGroup } from './process-group.js';
import { addTests, countTests, type TestCounts } from './test-results.js';

/** What is said of tests that ended without one of them having failed. */
const LAST_LINES = 100;

/** How often CI is told how far the tests are. */
const TOLD_EVERY_MS = 120_000;

/** Failed files that CI runs once more; when more have failed, it is not one test's bad moment. */
const REPEATED_FILES = 2;

/** How vitest ended. */
export interface Tested {
  readonly tests: TestCounts;
  /** A line for each failure, `FAILED <file> > <name>: <message>`. */
  readonly failed: readonly string[];
  /** The same of what failed among the others and passed when its file was run once more. */
  readonly flaky: readonly string[];
  readonly code: number;
}

/**
 * Runs tests. In CI what they print is kept from the log, which is often kept in part: it gets what failed,
 * as it happens. Also there, a file or two that failed are run once more, one after the other: what
 * passes then is told, and fails nothing.
 *
 * @param folder is given for reports, and is the caller's to remove.
 * @param args as vitest takes them.
 */
export async function runVitest(
  args: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<Tested> {
  const first = path.join(folder, 'first');
  const { code, failed } = await runOnce(args, first, env);
  const whole = countTests(reportOf(first));
  const files = isCi() ? filesToRepeat(failed) : [];
  if (code === 0 || files.length === 0 || stopping.signal.aborted) {
    return { tests: whole, failed, flaky: [], code };
  }
  say(`Once more, one after the other: ${files.join(', ')}`);
  const options = args.filter((arg) => arg.startsWith('--'));
  const second = path.join(folder, 'second');
  const again = await runOnce([...options, '--no-file-parallelism', ...files], second, env);
  const tests = addTests(countTests(reportOf(first), files), countTests(reportOf(second)));
  const isWell = again.code === 0;
  return { tests, failed: again.failed, flaky: isWell ? failed : [], code: again.code };
}

const isCi = () => process.env.CI !== undefined;

/** @returns none when too many have failed, or something that belongs to no file. */
function filesToRepeat(failed: readonly string[]): readonly string[] {
  const files = new Set(failed.map((line) => /^FAILED (\S+\.test\.\w+)\b/.exec(line)?.[1] ?? ''));
  return files.has('') || files.size > REPEATED_FILES ? [] : [...files];
}

const reportOf = (base: string) => `${base}.json`;

async function runOnce(
  args: readonly string[],
  base: string,
  env: Readonly<Record<string, string>>,
): Promise<Pick<Tested, 'code' | 'failed'>> {
  const program = path.join(projectRoot, 'node_modules', 'vitest', 'vitest.mjs');
  const [failures, output] = [`${base}.failed`, `${base}.log`];
  const reporters = ['default', builtProgram('scripts', 'failed-tests.js'), 'json'];
  const options = reporters.map((each) => `--reporter=${each}`);
  const all = [program, 'run', ...options, `--outputFile.json=${reportOf(base)}`, ...args];
  const environment = { ...process.env, ...env, [FAILED_TESTS_FILE]: failures };
  const follower = isCi() ? new Follower(failures) : undefined;
  const code = await runGroup(all, environment, follower && output);
  follower?.end();
  const failed = existsSync(failures) ? readFileSync(failures, 'utf8').trimEnd().split('\n') : [];
  if (follower !== undefined && code !== 0 && failed.length === 0) say(lastOf(output));
  return { code, failed: failed.filter((line) => line.startsWith('FAILED')) };
}

function lastOf(output: string): string {
  return readFileSync(output, 'utf8').split('\n').slice(-LAST_LINES).join('\n');
}

/** Says what is added to a file of failures, and every other minute that tests are still running. */
class Follower {
  readonly #started = performance.now();
  readonly #timer = setInterval(() => this.#tell(), TOLD_EVERY_MS);
  #told = 0;

  constructor(private readonly file: string) {}

  end(): void {
    clearInterval(this.#timer);
    this.#tellFailures();
  }

  #tell(): void {
    this.#tellFailures();
    const minutes = (performance.now() - this.#started) / 60_000;
    say(`${minutes.toFixed(0)} minutes of tests`);
  }

  #tellFailures(): void {
    if (!existsSync(this.file)) return;
    const all = readFileSync(this.file, 'utf8');
    if (all.length > this.#told) say(all.slice(this.#told).trimEnd());
    this.#told = all.length;
  }
}
