import { readFileSync } from 'node:fs';

/** What of vitest's JSON report is read here. */
interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/** How the tests went. */
export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  /** Names of the tests that did not run. */
  readonly skipped: readonly string[];
}

/** Counts what vitest reported; a file that failed to load counts as one failed test. */
export function countTests(reportFile: string): TestCounts {
  const report = JSON.parse(readFileSync(reportFile, 'utf8')) as VitestReport;
  const tests = report.testResults.flatMap((file) => file.assertionResults);
  const brokenFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + brokenFiles.length,
    skipped: tests
      .filter(({ status }) => ['skipped', 'pending', 'todo', 'disabled'].includes(status))
      .map(({ fullName }) => fullName),
  };
}
