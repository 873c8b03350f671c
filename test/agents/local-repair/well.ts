import type { WatchdogMemory } from '../../../src/types/watchdog.js';

/** What is remembered of an agent that runs, and never did otherwise. */
export const WELL: WatchdogMemory = {
  version: 1,
  state: 'running',
  since: 0,
  crashes: [],
  repairAttempts: 0,
  lastRepair: null,
};
