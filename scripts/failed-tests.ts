import { appendFileSync } from 'node:fs';
import path from 'node:path';
import type {
  Reporter,
  SerializedError,
  TestCase,
  TestModule,
  TestRunEndReason,
  TestSuite,
} from 'vitest/node';

/** Environment variable with the file from which `scripts/test.ts` reads the failures. */
export const FAILED_TESTS_FILE = 'FAILED_TESTS_FILE';

/** Maximum number of lines kept of one failure. */
const DETAILS = 60;

interface Thrown {
  readonly diff?: string;
  readonly message?: string;
  readonly name?: string;
  readonly stack?: string;
}

/**
 * Prints one line for each failure when it happens, between other reporters' output, and stores the line
 * for the end, with the error in indented lines below it.
 */
export default class FailedTests implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { errors, state } = test.result();
    if (state === 'failed') report(test.module.relativeModuleId, test.fullName, errors);
  }

  /** Reports failures in hooks. */
  onTestSuiteResult(suite: TestSuite): void {
    reportAny(suite.module.relativeModuleId, suite.fullName, suite.errors());
  }

  /** Reports failures at import, or in hooks of the whole file. */
  onTestModuleEnd(module: TestModule): void {
    reportAny(module.relativeModuleId, '', module.errors());
  }

  /** Reports uncaught errors. */
  onTestRunEnd(
    _modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    _reason: TestRunEndReason,
  ): void {
    for (const error of unhandled) report('unhandled', '', [error]);
  }
}

function reportAny(file: string, name: string, errors: readonly Thrown[]): void {
  if (errors.length > 0) report(file, name, errors);
}

function report(file: string, name: string, errors: readonly Thrown[] | undefined): void {
  const line = failedLine(file, name, errors?.[0]);
  console.log(line);
  const kept = process.env[FAILED_TESTS_FILE];
  if (kept === undefined) return;
  const details = (errors ?? []).flatMap(({ stack = '', diff = '' }) => [stack, diff]).join('\n');
  const indented = details.split('\n').slice(0, DETAILS);
  appendFileSync(path.resolve(kept), [line, ...indented.map((each) => `  ${each}`), ''].join('\n'));
}

/** Returns `FAILED <file> > <name>: <first line of the message>` */
export function failedLine(file: string, name: string, error: Thrown | undefined): string {
  const message = error?.message ?? error?.name ?? 'without a message';
  const [first = ''] = message.trimStart().split('\n', 1);
  return `FAILED ${file}${name === '' ? '' : ` > ${name}`}: ${first.slice(0, 300)}`;
}
