import type { SupervisorStore } from '../src/agents/supervisor-store.js';
import type { WatchdogSettings } from '../src/agents/watchdog.js';
import { asApplicationFailure } from './failures.js';

/** What workflows write to the database. Run as local activities: short and idempotent. */
export function createRecordActivities(records: SupervisorStore, settings: WatchdogSettings) {
  return {
    reservePort: (...args: Parameters<SupervisorStore['reservePort']>) =>
      asApplicationFailure(() => records.reservePort(...args)),
    releasePort: records.releasePort.bind(records),
    recordRunning: records.recordRunning.bind(records),
    /** Asked for whenever it matters, so that a change reaches supervisors that run for months. */
    watchdogSettings: () => Promise.resolve(settings),
    recordTransition: records.recordTransition.bind(records),
    recordRepairAttempt: records.recordRepairAttempt.bind(records),
    beginOperation: records.beginOperation.bind(records),
    finishOperation: records.finishOperation.bind(records),
  };
}

export type RecordActivities = ReturnType<typeof createRecordActivities>;
