import { ApplicationFailure } from '@temporalio/common';
import { NoPortFreeError, type SupervisorStore } from '../src/agents/supervisor-store.js';
import type { WatchdogSettings } from '../src/agents/watchdog.js';
import { NotFoundError } from '../src/errors.js';

/** What workflows write to the database. Run as local activities: short and idempotent. */
export function createRecordActivities(records: SupervisorStore, settings: WatchdogSettings) {
  return {
    reservePort: async (...args: Parameters<SupervisorStore['reservePort']>) => {
      try {
        return await records.reservePort(...args);
      } catch (error) {
        // Waiting makes neither a port nor an agent; saying so does.
        if (error instanceof NoPortFreeError || error instanceof NotFoundError) {
          throw ApplicationFailure.nonRetryable(error.message, error.name);
        }
        throw error;
      }
    },
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
