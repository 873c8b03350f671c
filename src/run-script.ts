import { SettingsError } from './platform/environment/settings-error.js';
import { refuseOperatorKey } from './settings.js';

/** Types of errors whose message is sufficient for an operator to fix the problem. */
type Expected = abstract new (...args: never[]) => Error;

/** Runs an operator's script; prints the message of an expected error and exits with 1. */
export async function runScript(
  main: () => Promise<unknown>,
  ...expected: readonly Expected[]
): Promise<void> {
  try {
    refuseOperatorKey();
    await main();
  } catch (error) {
    const isExpected = [SettingsError, ...expected].some((type) => error instanceof type);
    if (!isExpected) throw error;
    console.error((error as Error).message); // one of the expected types
    process.exitCode = 1;
  }
}
