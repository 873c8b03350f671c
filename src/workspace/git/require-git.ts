import { UnavailableError } from '../../lib/errors.js';
import { runGit } from './run-git.js';

/** The first one that takes the address for a name, so that it cannot change meanwhile. */
const LEAST = [2, 37] as const;

let isKnown = false;

/** @throws UnavailableError where git is not there, or too old. */
export async function requireGit(cwd: string, signal: AbortSignal): Promise<void> {
  if (isKnown) return;
  const { output } = await runGit({ args: ['--version'], cwd, env: {}, signal });
  const [, major = 0, minor = 0] = (/(\d{1,9})\.(\d{1,9})/.exec(output.toString()) ?? []).map(
    Number,
  );
  if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) {
    throw new UnavailableError(`git ${LEAST.join('.')} or later is needed on this host`);
  }
  isKnown = true;
}
