import type { SupervisorStore } from '../src/agents/operations/supervisor-store.js';
import type { WatchdogSettings } from '../src/types/watchdog.js';
import { asApplicationFailure } from './failures.js';

/** Creates the activities that write to the database. Run as local activities: short and idempotent. */
export function createRecordActivities(records: SupervisorStore, settings: WatchdogSettings) {
  const record =
    <Args extends unknown[], Answer>(write: (...args: Args) => Promise<Answer>) =>
    (...args: Args) =>
      asApplicationFailure(() => write(...args));

  return {
    loadSupervisedState: record(records.loadSupervisedState.bind(records)),
    reservePort: record(records.reservePort.bind(records)),
    releasePort: record(records.releasePort.bind(records)),
    recordRunning: record(records.recordRunning.bind(records)),
    /** Read before every use, so that a change reaches supervisors that run for months. */
    watchdogSettings: () => Promise.resolve(settings),
    recordTransition: record(records.recordTransition.bind(records)),
    recordPast: record(records.recordPast.bind(records)),
    recordRepairAttempt: record(records.recordRepairAttempt.bind(records)),
    beginOperation: record(records.beginOperation.bind(records)),
    finishOperation: record(records.finishOperation.bind(records)),
  };
}

export type RecordActivities = ReturnType<typeof createRecordActivities>;
