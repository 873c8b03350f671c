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

/** The file in which `scripts/test.ts` finds the lines again, by environment variable. */
export const FAILED_TESTS_FILE = 'FAILED_TESTS_FILE';

/** Lines of one failure that are kept. */
const DETAILS = 60;

interface Thrown {
  readonly diff?: string;
  readonly message?: string;
  readonly name?: string;
  readonly stack?: string;
}

/**
 * Says of each failure one line when it happens, among what the others report, and keeps it for the end,
 * with what was thrown in the indented lines after it.
 */
export default class FailedTests implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { errors, state } = test.result();
    if (state === 'failed') tell(test.module.relativeModuleId, test.fullName, errors);
  }

  /** What failed in hooks. */
  onTestSuiteResult(suite: TestSuite): void {
    tellAny(suite.module.relativeModuleId, suite.fullName, suite.errors());
  }

  /** What failed while the file was read, or in hooks of all of it. */
  onTestModuleEnd(module: TestModule): void {
    tellAny(module.relativeModuleId, '', module.errors());
  }

  /** What nobody caught. */
  onTestRunEnd(
    _modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    _reason: TestRunEndReason,
  ): void {
    for (const error of unhandled) tell('unhandled', '', [error]);
  }
}

function tellAny(file: string, name: string, errors: readonly Thrown[]): void {
  if (errors.length > 0) tell(file, name, errors);
}

function tell(file: string, name: string, errors: readonly Thrown[] | undefined): void {
  const line = failedLine(file, name, errors?.[0]);
  console.log(line);
  const kept = process.env[FAILED_TESTS_FILE];
  if (kept === undefined) return;
  const details = (errors ?? []).flatMap(({ stack = '', diff = '' }) => [stack, diff]).join('\n');
  const indented = details.split('\n').slice(0, DETAILS);
  appendFileSync(path.resolve(kept), [line, ...indented.map((each) => `  ${each}`), ''].join('\n'));
}

/** `FAILED <file> > <name>: <first line of the message>` */
export function failedLine(file: string, name: string, error: Thrown | undefined): string {
  const message = error?.message ?? error?.name ?? 'without a message';
  const [first = ''] = message.trimStart().split('\n', 1);
  return `FAILED ${file}${name === '' ? '' : ` > ${name}`}: ${first.slice(0, 300)}`;
}
