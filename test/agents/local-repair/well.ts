import type { WatchdogMemory } from '../../../src/types/watchdog.js';

/** Watchdog memory of an agent that has always run well. */
export const WELL: WatchdogMemory = {
  version: 1,
  state: 'running',
  since: 0,
  crashes: [],
  repairAttempts: 0,
  lastRepair: null,
};
