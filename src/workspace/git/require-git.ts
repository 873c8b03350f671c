import { UnavailableError } from '../../lib/errors.js';
import { runGit } from './run-git.js';

/** The first version in which `http.curloptResolve` pins a host's address. */
const LEAST = [2, 37] as const;

let isKnown = false;

/** Checks the installed git. @throws UnavailableError if it is missing or too old. */
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
