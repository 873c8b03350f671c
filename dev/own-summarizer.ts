import type { HttpSettings } from '../src/platform/http/settings.js';
import { isSet } from './settings.js';

/** Returns an environment of the APIs with the address of the local summarizer, unless one is set. */
export function withOwnSummarizer(
  env: NodeJS.ProcessEnv,
  { ownSummarizerUrl, summarizerPort }: Pick<HttpSettings, 'ownSummarizerUrl' | 'summarizerPort'>,
): NodeJS.ProcessEnv {
  // A port that the system chooses is not known in advance.
  if (summarizerPort === 0 || isSet(env, 'SUMMARIZER_URL')) return env;
  return { ...env, SUMMARIZER_URL: ownSummarizerUrl };
}
