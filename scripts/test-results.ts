import { existsSync, readFileSync } from 'node:fs';

/** The members of vitest's JSON report in use. */
interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/** Results of the tests. */
export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  /** Names of the tests that did not run. */
  readonly skipped: readonly string[];
}

/**
 * Counts the results that vitest reported; a file that failed to load counts as one failed test, and so
 * does a missing report.
 *
 * @param except files that are not counted, relative to the folder of the run.
 */
export function countTests(reportFile: string, except: readonly string[] = []): TestCounts {
  if (!existsSync(reportFile)) return { passed: 0, failed: 1, skipped: [] };
  const report = JSON.parse(readFileSync(reportFile, 'utf8')) as VitestReport;
  const files = report.testResults.filter(
    ({ name }) => !except.some((each) => name.endsWith(`/${each}`)),
  );
  const tests = files.flatMap((file) => file.assertionResults);
  const brokenFiles = files.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  const count = (wanted: string) => tests.filter(({ status }) => status === wanted).length;
  return {
    passed: count('passed'),
    failed: count('failed') + brokenFiles.length,
    skipped: tests
      .filter(({ status }) => ['skipped', 'pending', 'todo', 'disabled'].includes(status))
      .map(({ fullName }) => fullName),
  };
}

/** Adds the counts of two runs. */
export function addTests(some: TestCounts, others: TestCounts): TestCounts {
  return {
    passed: some.passed + others.passed,
    failed: some.failed + others.failed,
    skipped: [...some.skipped, ...others.skipped],
  };
}
