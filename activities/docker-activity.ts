import { asApplicationFailure } from './failures.js';
import { heartbeating } from './heartbeating.js';

/** An activity at Docker: says that it is alive, and how it failed. */
export const dockerActivity = <T>(work: () => Promise<T>): Promise<T> =>
  asApplicationFailure(() => heartbeating(work));
