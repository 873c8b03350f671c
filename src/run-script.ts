import { SettingsError } from './platform/environment/settings-error.js';
import { refuseOperatorKey } from './settings.js';

/** An error that a person can do something about by its message alone. */
type Expected = abstract new (...args: never[]) => Error;

/** Runs a script of an operator's: what they can mend is told in a sentence, and the exit code is 1. */
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
    console.error((error as Error).message); // one of the types above
    process.exitCode = 1;
  }
}
