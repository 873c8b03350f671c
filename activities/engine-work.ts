import { telling } from './failures.js';
import { heartbeating } from './heartbeat.js';

/** An activity at the engine: says that it is alive, and how it failed. */
export const engineWork = <T>(work: () => Promise<T>): Promise<T> =>
  telling(() => heartbeating(work));
