import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { say } from '../dev/report.js';
import { builtProgram, projectRoot } from '../dev/root.js';
import { stopping } from '../dev/processes/stopping.js';
import { FAILED_TESTS_FILE } from './failed-tests.js';
import { runGroup } from './process-group.js';
import { addTests, countTests, type TestCounts } from './test-results.js';

/** Lines of output shown if the run failed although no test failed. */
const LAST_LINES = 100;

/** Milliseconds between two progress lines in CI. */
const REPORT_EVERY_MS = 120_000;

/** Maximum number of failed files that CI repeats; if more failed, the cause is not one flaky test. */
const REPEATED_FILES = 2;

/** Results of a vitest run. */
export interface Tested {
  readonly tests: TestCounts;
  /** A line for each failure, `FAILED <file> > <name>: <message>`. */
  readonly failed: readonly string[];
  /** Failures, as lines, of tests that passed when their file was repeated. */
  readonly flaky: readonly string[];
  readonly code: number;
}

/**
 * Runs tests. In CI their output is kept out of the log, which is often truncated, except for failures as
 * they happen. CI also repeats one or two failed files, one after the other: tests that pass then are
 * reported as flaky, and do not fail the run.
 *
 * @param folder is for reports, and is removed by the caller.
 * @param args as for vitest.
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
  say(`Repeating, one after the other: ${files.join(', ')}`);
  const options = args.filter((arg) => arg.startsWith('--'));
  const second = path.join(folder, 'second');
  const again = await runOnce([...options, '--no-file-parallelism', ...files], second, env);
  const tests = addTests(countTests(reportOf(first), files), countTests(reportOf(second)));
  const isWell = again.code === 0;
  return { tests, failed: again.failed, flaky: isWell ? failed : [], code: again.code };
}

const isCi = () => process.env.CI !== undefined;

/** Returns the files to repeat; none if too many failed, or if a failure belongs to no file. */
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

/** Prints new lines of a file of failures, and every other minute that the tests still run. */
class Follower {
  readonly #started = performance.now();
  readonly #timer = setInterval(() => this.#report(), REPORT_EVERY_MS);
  #reported = 0;

  constructor(private readonly file: string) {}

  end(): void {
    clearInterval(this.#timer);
    this.#reportFailures();
  }

  #report(): void {
    this.#reportFailures();
    const minutes = (performance.now() - this.#started) / 60_000;
    say(`tests have run for ${minutes.toFixed(0)} minutes`);
  }

  #reportFailures(): void {
    if (!existsSync(this.file)) return;
    const all = readFileSync(this.file, 'utf8');
    if (all.length > this.#reported) say(all.slice(this.#reported).trimEnd());
    this.#reported = all.length;
  }
}
