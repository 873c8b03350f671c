import type { HttpSettings } from '../src/platform/http/settings.js';
import { isSet } from './settings.js';

/** An environment of the APIs that says where the summarizer beside them is, unless it says so already. */
export function withOwnSummarizer(
  env: NodeJS.ProcessEnv,
  { ownSummarizerUrl, summarizerPort }: Pick<HttpSettings, 'ownSummarizerUrl' | 'summarizerPort'>,
): NodeJS.ProcessEnv {
  // Where it listens on a port that the system chooses, nobody knows of it before.
  if (summarizerPort === 0 || isSet(env, 'SUMMARIZER_URL')) return env;
  return { ...env, SUMMARIZER_URL: ownSummarizerUrl };
}
